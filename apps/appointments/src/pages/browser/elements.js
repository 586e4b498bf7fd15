// @ts-check

/**
 * The element of a page that a selector finds: pages and scripts are written together, so one that is not there is a
 * fault of ours.
 * @template {Element} T
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} type
 * @returns {T}
 */
export function find(root, selector, type) {
  const found = root.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`The page has no ${selector}.`);
  return found;
}

/**
 * A new element. Text is only ever text here, whoever wrote it.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} content
 */
export function make(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

/**
 * A radio button that looks like a tile: the keyboard, the names and the state of a radio group are the browser's.
 * @param {{ group: string, value: string, text: string, name: string, checked: boolean }} tile
 */
export function makeTile({ group, value, text, name, checked }) {
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: group, value, checked });
  input.setAttribute("aria-label", name);
  return make("label", { class: "tile" }, input, make("span", {}, text));
}
