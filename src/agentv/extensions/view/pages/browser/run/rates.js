// Rows of rates: outcomes, the pass rate and its interval.

import { count, percent, score } from "../data/numbers.js";
import { EARLY, isShare } from "../data/rates.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { intervalDrawing, outcomesDrawing } from "../dom/charts.js";
import { button, element } from "../dom/elements.js";

export const MOST_GROUPS = 25;

export function tableOf(titles, rows) {
  const head = element(
    "thead",
    {},
    element(
      "tr",
      {},
      titles.map((title) => element("th", { scope: "col" }, title)),
    ),
  );
  const body = element("tbody", {}, rows.slice(0, MOST_GROUPS));
  const box = element("div", { class: "panel scrolls" }, element("table", {}, head, body));
  if (rows.length > MOST_GROUPS) {
    const more = button(
      `Show all ${rows.length.toLocaleString("en")}`,
      () => {
        body.append(...rows.slice(MOST_GROUPS));
        more.remove();
      },
      { class: "more" },
    );
    box.append(more);
  }
  return box;
}

// Whether the rate counts trials of cases that ran several times: beside the numbers of cases, both then name their unit.
export function countsTrials(counts, rate) {
  return Boolean(rate?.judged) && rate.of !== EARLY && rate.judged !== counts.passed + counts.failed;
}

/** `of 12 judged trials`, `over 60 judged samples`. */
export function unitWords(rate) {
  return `${isShare(rate) ? "of" : "over"} ${count(rate.judged, rate.of ?? "judged trial")}`;
}

export function rateRows(told) {
  const units = told.some(([, counts, , rate]) => countsTrials(counts, rate));
  return told.map((one) => rateRow(...one, units));
}

export function caseWords(counts) {
  return `${count(
    STATUSES.reduce((cases, status) => cases + counts[status], 0),
    "case",
  )}: ${outcomeWords(counts)}`;
}

export function rateRow(name, counts, address, rate, mean, units = false) {
  const { interval } = rate ?? {};
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("a", { href: address }, name)),
    element(
      "td",
      { class: "wide" },
      outcomesDrawing(counts),
      element("span", { class: "small" }, units ? caseWords(counts) : outcomeWords(counts)),
    ),
    element(
      "td",
      { class: "number" },
      rate ? percent(rate.rate) : "–",
      rate && units ? element("span", { class: "small of" }, unitWords(rate)) : null,
    ),
    element(
      "td",
      { class: "wide" },
      interval
        ? [
            intervalDrawing(rate.rate, interval),
            element("span", { class: "small" }, `${percent(interval[0])} to ${percent(interval[1])}`),
          ]
        : "–",
    ),
    mean === undefined ? null : element("td", { class: "number" }, score(mean)),
  );
}

export function outcomeWords(counts) {
  return STATUSES.filter((status) => counts[status])
    .map((status) => `${counts[status].toLocaleString("en")} ${STATUS_WORDS[status]}`)
    .join(", ");
}
