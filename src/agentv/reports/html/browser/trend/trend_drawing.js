// Runs of a suite as points with their intervals, and the line through them.

import { percent } from "../data/numbers.js";
import { drawing } from "../dom/elements.js";

const TREND_SIZE = { width: 720, height: 240, left: 44, right: 12, top: 12, bottom: 14 };

/** Where the fitted line begins and ends, cut to 0..1; null: there is none. */
export function fittedEnds({ theil_sen: fitted, runs, runs_left_out: first = 0 }) {
  const last = runs.length - 1;
  if (!fitted || last <= first) return null;
  const at = (place) => Math.min(1, Math.max(0, fitted.start + fitted.slope * (place - first)));
  return [
    [first, at(first)],
    [last, at(last)],
  ];
}

export const MOST_TARGETS = 6;

/** Stretches of a line, in each of which every run has a value: [place, value]. @param {(number | null)[]} values */
export function stretchesOf(values) {
  /** @type {[number, number][][]} */
  const found = [[]];
  for (const [place, value] of values.entries())
    if (value === null) found.push([]);
    else found.at(-1).push([place, value]);
  return found.filter(({ length }) => length);
}

/** @param {any} data @param {{ target: string, values: (number | null)[] }[]} targets each a line of its own */
export function trendDrawing(data, targets = []) {
  const { width, height, left, right, top, bottom } = TREND_SIZE;
  const steps = Math.max(1, data.runs.length - 1);
  const x = (place) => (left + 8 + (place * (width - left - right - 16)) / steps).toFixed(1);
  const y = (share) => (top + (1 - share) * (height - top - bottom)).toFixed(1);
  const ends = fittedEnds(data);
  const values = data.runs.map(({ value }) => percent(value)).join(", ");
  return drawing(
    "svg",
    {
      class: "trendline",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${data.runs.length} runs, the oldest first: ${values}`,
    },
    [0, 0.25, 0.5, 0.75, 1].map((share) => [
      drawing("line", { class: "axis", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      drawing("text", { x: left - 6, y: y(share), dy: 4, "text-anchor": "end" }, `${share * 100}%`),
    ]),
    targets.map(({ values }, number) =>
      stretchesOf(values).map((stretch) => [
        drawing("polyline", {
          class: `targetline target${number}`,
          points: stretch.map(([place, value]) => `${x(place)},${y(value)}`).join(" "),
        }),
        stretch.map(([place, value]) =>
          drawing("circle", { class: `targetrun target${number}`, cx: x(place), cy: y(value), r: 2.5 }),
        ),
      ]),
    ),
    ends
      ? drawing("line", { class: "fitted", x1: x(ends[0][0]), y1: y(ends[0][1]), x2: x(ends[1][0]), y2: y(ends[1][1]) })
      : null,
    data.runs.map(({ value, interval }, place) => [
      interval
        ? drawing("line", { class: "reach", x1: x(place), x2: x(place), y1: y(interval[0]), y2: y(interval[1]) })
        : null,
      drawing("circle", { class: "run", cx: x(place), cy: y(value), r: 4 }),
    ]),
  );
}
