import { spread } from "../measuring.ts";
import type { Results } from "../run.ts";

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const width = 760;
const labels = 250;
const barHeight = 18;
const gap = 8;
const head = 34;

/** Horizontal bars with a whisker from the least to the most; colours that stand on light and dark ground. */
export function chart(results: Results): string {
  const panels = panelsOf(results).filter(({ bars }) => bars.length > 0);
  const heights = panels.map(({ bars }) => head + bars.length * (barHeight + gap) + 16);
  const height = heights.reduce((a, b) => a + b, 8);
  let top = 8;
  const drawn = panels.map((panel, index) => {
    const group = `<g transform="translate(0 ${top})">${panelSvg(panel)}</g>`;
    top += heights[index]!;
    return group;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" role="img">
<title>Hookwell beside its peers</title>
<rect width="${width}" height="${height}" rx="8" fill="#ffffff"/>
${drawn.join("\n")}
</svg>
`;
}

function panelsOf({ throughput = [], latency = [] }: Results): Panel[] {
  const rounds = throughput.map(({ contestant, rounds: list }): Bar => {
    const { min, median, max } = spread(list.map(({ perSecond }) => perSecond));
    return { name: contestant, value: median, low: min, high: max };
  });
  const cpu = throughput.map(({ contestant, rounds: list }): Bar => {
    const { min, median, max } = spread(list.map(({ workerCpuUs }) => workerCpuUs));
    return { name: contestant, value: median, low: min, high: max };
  });
  const waits = (processes: string): Bar[] =>
    latency
      .filter((each) => each.load === "idle" && each.processes === processes)
      .map(({ contestant, latency: { p50, p99 } }) => ({
        name: contestant,
        value: p50,
        low: p50,
        high: p99,
      }));
  return [
    { title: "Deliveries a second, one worker process", bars: rounds },
    { title: "CPU of the worker process for one delivery, µs", bars: cpu },
    { title: "Emit to received, idle, one process: p50 and up to p99, ms", bars: waits("one") },
    { title: "Emit to received, idle, two processes: p50 and up to p99, ms", bars: waits("two") },
  ];
}

function panelSvg({ title, bars }: Panel): string {
  const most = Math.max(...bars.map(({ value, high }) => Math.max(value, high)));
  const scale = (value: number): number => (value / most) * (width - labels - 90);
  const rows = bars.map(({ name, value, low, high }, index) => {
    const y = head + index * (barHeight + gap);
    const middle = y + barHeight / 2;
    const colour = name.startsWith("Hookwell") ? "#2563eb" : "#94a3b8";
    const number = value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
    const end = labels + Math.max(scale(value), scale(high));
    return `<text x="${labels - 10}" y="${middle + 4}" text-anchor="end" fill="#0f172a">${name}</text>
<rect x="${labels}" y="${y}" width="${scale(value).toFixed(1)}" height="${barHeight}" rx="2" fill="${colour}"/>
<path d="M${(labels + scale(low)).toFixed(1)} ${middle}H${(labels + scale(high)).toFixed(1)}" stroke="#0f172a" stroke-width="1.5"/>
<text x="${(end + 8).toFixed(1)}" y="${middle + 4}" fill="#334155">${number}</text>`;
  });
  return `<text x="16" y="18" font-weight="600" fill="#0f172a">${title}</text>\n${rows.join("\n")}`;
}
