// @ts-check

/**
 * What the application answered. `status` 0 = it was not reached, or its answer did not arrive.
 * @typedef {{ readonly status: number, readonly body: Record<string, unknown> }} Answer
 */

/**
 * @param {string} path
 * @returns {Promise<Answer>}
 */
export const read = (path) => exchange(path, {});

/**
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<Answer>}
 */
export const submit = (path, body) =>
  exchange(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/**
 * @param {string} path
 * @param {RequestInit} init
 * @returns {Promise<Answer>}
 */
async function exchange(path, init) {
  try {
    const response = await fetch(path, {
      ...init,
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
    });
    const body = await response.json();
    return { status: response.status, body };
  } catch {
    return { status: 0, body: {} };
  }
}

/**
 * A refusal in words for a customer. Only what the page knows how to say: details of the API are for programs.
 * @param {Answer} answer
 * @param {string} unchanged what is still as it was, such as "Nothing was booked."
 */
export function explain({ status, body }, unchanged) {
  if (status === 0)
    return "The answer did not arrive, so it is not known whether this worked. Reload the page to see.";
  if (status === 429) return `Too many requests. ${unchanged} Wait a while, then try again.`;
  if (status === 404 || status === 410)
    return `This link cannot be used any more. ${unchanged} Reload the page to see why.`;
  if (body.code === "calendar_unreachable")
    return `A calendar cannot be reached. ${unchanged} Try again in a few minutes.`;
  return `Something went wrong. ${unchanged} Try again in a few minutes.`;
}

/**
 * The problems that a refusal names, by the path of the field.
 * @param {Answer} answer
 * @returns {{ readonly pointer: string, readonly message: string }[]}
 */
export function fieldProblems({ body }) {
  return Array.isArray(body.errors) ? body.errors : [];
}
