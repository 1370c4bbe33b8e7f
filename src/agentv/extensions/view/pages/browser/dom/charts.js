// Drawings: an interval on a line from 0 to 100%, and outcomes as parts of a bar. Places are shares of their width.

import { percent, score } from "../data/numbers.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { drawing } from "./elements.js";

export function at(share) {
  return `${(share * 100).toFixed(2)}%`;
}

export function intervalDrawing(rate, interval, attributes = {}, what = "95% CI") {
  const [low, high] = interval;
  const label = `${percent(rate)}, ${what} ${percent(low)} to ${percent(high)}`;
  return drawing(
    "svg",
    { class: "interval", role: "img", "aria-label": label, ...attributes },
    drawing("line", { class: "axis", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
    [0.25, 0.5, 0.75].map((tick) =>
      drawing("line", { class: "tick", x1: at(tick), x2: at(tick), y1: "30%", y2: "70%" }),
    ),
    drawing("rect", {
      class: "band",
      x: at(low),
      width: at(Math.max(high - low, 0.002)),
      y: "22%",
      height: "56%",
      rx: 3,
    }),
    drawing("line", { class: "point", x1: at(rate), x2: at(rate), y1: "6%", y2: "94%" }),
  );
}

export function outcomesDrawing(counts) {
  const total = STATUSES.reduce((sum_, status) => sum_ + counts[status], 0);
  let from = 0;
  const parts = STATUSES.filter((status) => counts[status]).map((status) => {
    const share = counts[status] / total;
    const part = drawing("rect", { class: status, x: at(from), width: at(share), y: 0, height: "100%" });
    from += share;
    return part;
  });
  const label = STATUSES.map((status) => `${counts[status]} ${STATUS_WORDS[status]}`).join(", ");
  return drawing("svg", { class: "outcomes", role: "img", "aria-label": label }, parts);
}

// Distribution of scores: columns of equal width, cases that passed above those that did not, and how many there are.
export function scoresDrawing(columns) {
  const most = Math.max(1, ...columns.map(([passed, failed]) => passed + failed));
  const wide = columns.length;
  const label = columns.map(([passed, failed], number) =>
    passed + failed ? `${number / wide} to ${(number + 1) / wide}: ${passed} passed, ${failed} failed` : null,
  );
  return drawing(
    "svg",
    { class: "scores", role: "img", "aria-label": `Distribution of scores. ${label.filter(Boolean).join("; ")}` },
    columns.map((column, number) => scoresColumn(column, number, wide, most)),
  );
}

const TALLEST = 84;

function scoresColumn([passed, failed], number, wide, most) {
  if (!passed && !failed) return null;
  const high = (some) => (some / most) * TALLEST;
  const bar = (status, from, some) =>
    some
      ? drawing("rect", {
          class: status,
          x: at((number + 0.08) / wide),
          width: at(0.84 / wide),
          y: `${100 - from - high(some)}%`,
          height: `${high(some)}%`,
        })
      : null;
  const top = 100 - high(passed + failed);
  return [
    bar("failed", 0, failed),
    bar("passed", high(failed), passed),
    drawing(
      "text",
      { class: "many", x: at((number + 0.5) / wide), y: `${top}%`, dy: -4 },
      (passed + failed).toLocaleString("en"),
    ),
  ];
}

export function scoreBar(value, threshold, status) {
  return drawing(
    "svg",
    { class: "scorebar", role: "img", "aria-label": `score ${score(value)} of 1, ${score(threshold)} needed` },
    drawing("rect", { class: "ground", x: 0, y: "25%", width: "100%", height: "50%", rx: 3 }),
    drawing("rect", { class: status, x: 0, y: "25%", width: at(value), height: "50%", rx: 3 }),
    drawing("line", { class: "needed", x1: at(threshold), x2: at(threshold), y1: 0, y2: "100%" }),
  );
}

const SPARK = { width: 90, height: 26, edge: 4 };

/** Pass rates of runs, the oldest first; the last one is marked. */
export function sparkDrawing(rates) {
  const { width, height, edge } = SPARK;
  const x = (place) => edge + (place * (width - 2 * edge)) / Math.max(1, rates.length - 1);
  const y = (rate) => edge + (1 - rate) * (height - 2 * edge);
  const line = rates.map((rate, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(rate).toFixed(1)}`).join("");
  const label = `Pass rates of ${rates.length} runs, the oldest first: ${rates.map(percent).join(", ")}`;
  return drawing(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    drawing("line", { class: "axis", x1: 0, x2: width, y1: height - edge, y2: height - edge }),
    drawing("path", { d: line }),
    drawing("circle", { cx: x(rates.length - 1).toFixed(1), cy: y(rates.at(-1)).toFixed(1), r: 3 }),
  );
}
