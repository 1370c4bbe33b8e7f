// Runs of a suite as points with their intervals, and a line where a change is shown.

import { percent } from "../data/numbers.js";
import { drawing } from "../dom/elements.js";

const TREND_SIZE = { width: 720, height: 240, left: 44, right: 12, top: 12, bottom: 14 };

/** @param {any} data as `agentv trend --json` has it */
export function trendDrawing(data) {
  const { width, height, left, right, top, bottom } = TREND_SIZE;
  const steps = Math.max(1, data.runs.length - 1);
  const x = (place) => (left + 8 + (place * (width - left - right - 16)) / steps).toFixed(1);
  const y = (share) => (top + (1 - share) * (height - top - bottom)).toFixed(1);
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
    data.runs.map(({ change }, place) =>
      place && change?.direction
        ? drawing("line", { class: "change", x1: x(place - 0.5), x2: x(place - 0.5), y1: y(1), y2: y(0) })
        : null,
    ),
    data.runs.map(({ value, interval }, place) => [
      interval
        ? drawing("line", { class: "reach", x1: x(place), x2: x(place), y1: y(interval[0]), y2: y(interval[1]) })
        : null,
      drawing("circle", { class: "run", cx: x(place), cy: y(value), r: 4 }),
    ]),
  );
}
