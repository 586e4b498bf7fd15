/** One sample of a page. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const metric = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const sampleLine = new RegExp(`^(${metric})(\\{(.*)\\})? (\\S+)$`);
const suffixes: Readonly<Record<string, readonly string[]>> = { histogram: ["_bucket", "_sum", "_count"] };

/**
 * Reads a page in the Prometheus text format 0.0.4 as strictly as its description: HELP and TYPE once and before the
 * samples, samples of a family together, no series twice, only the escapes there are, histograms that add up.
 * @throws Error with the line at fault
 */
export function readPrometheus(page: string): ReadonlyMap<string, Family> {
  if (!page.endsWith("\n")) throw new Error("The last line must end with a line feed.");
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>();
  const series = new Set<string>();
  let current = "";
  for (const line of page.slice(0, -1).split("\n")) {
    const fault = (why: string): Error => new Error(`${why}: ${JSON.stringify(line)}`);
    const comment = new RegExp(`^# (HELP|TYPE) (${metric}) (.+)$`).exec(line);
    if (comment) {
      const [, kind, name, text] = comment;
      if (kind === "HELP") {
        if (families.has(name!)) throw fault("a second HELP");
        if (/\\(?![\\n])/.test(text!)) throw fault("an escape that there is not");
        current = name!;
        families.set(current, { type: "", help: unescaped(text!), samples: [] });
        continue;
      }
      const family = families.get(name!);
      if (name !== current || !family || family.type !== "") throw fault("TYPE must follow its HELP, once");
      if (!["counter", "gauge", "histogram"].includes(text!)) throw fault("no such type");
      family.type = text!;
      continue;
    }
    const [, name, , labelText, valueText] = sampleLine.exec(line) ?? [];
    const family = families.get(current);
    if (name === undefined || !family?.type) throw fault("neither a comment nor a sample of a family");
    if (!(suffixes[family.type] ?? [""]).some((suffix) => name === current + suffix))
      throw fault("a sample of another family");
    const value = valueText === "+Inf" ? Number.POSITIVE_INFINITY : Number(valueText);
    if (!Number.isFinite(value) || (family.type !== "gauge" && value < 0)) throw fault("no such value");
    const labels = labelText === undefined ? {} : readLabels(labelText, fault);
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
    if (series.has(key)) throw fault("a series twice");
    series.add(key);
    family.samples.push({ name, labels, value });
  }
  for (const [name, family] of families) {
    if (family.samples.length === 0) throw new Error(`${name} has no sample.`);
    if (family.type === "histogram") checkHistogram(name, family.samples);
  }
  return families;
}

function readLabels(text: string, fault: (why: string) => Error): Record<string, string> {
  const labels: Record<string, string> = {};
  const pair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;
  while (pair.lastIndex < text.length) {
    const match = pair.exec(text);
    if (!match || Object.hasOwn(labels, match[1]!)) throw fault("labels that cannot be read");
    labels[match[1]!] = unescaped(match[2]!);
  }
  return labels;
}

function unescaped(text: string): string {
  return text.replace(/\\(["\\n])/g, (_, letter: string) => (letter === "n" ? "\n" : letter));
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const bounds = buckets.map(({ labels }) =>
    labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le),
  );
  const rises = (numbers: readonly number[]): boolean =>
    numbers.every((number, index) => index === 0 || number >= numbers[index - 1]!);
  const count = samples.find((sample) => sample.name === `${name}_count`)?.value;
  if (!rises(bounds) || bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name}: bounds`);
  if (!rises(buckets.map(({ value }) => value)) || buckets.at(-1)!.value !== count)
    throw new Error(`${name}: buckets do not add up`);
}
