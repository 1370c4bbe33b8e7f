// Shapes and words, so that colour is never all that tells one outcome from another.

import { partWords } from "../data/numbers.js";
import { STATUS_WORDS } from "../data/statuses.js";
import { drawing, element } from "./elements.js";

const STATUS_SHAPES = {
  passed: "M4 8.5 7 11.5 12.5 5",
  failed: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  errored: "M8 3.5V9.2M8 11.6V12.4",
  skipped: "M4.5 8H11.5",
  shown: "M3.5 8C5.5 5 10.5 5 12.5 8C10.5 11 5.5 11 3.5 8M8 7.2V8.8",
  flaky: "M3.5 9C5 5.5 7 5.5 8 8S11 10.5 12.5 7",
};

export function statusIcon(status) {
  return drawing(
    "svg",
    { class: `icon ${status}`, viewBox: "0 0 16 16", role: "img", "aria-label": STATUS_WORDS[status] },
    drawing("circle", { cx: 8, cy: 8, r: 8 }),
    drawing("path", { d: STATUS_SHAPES[status] }),
  );
}

/** The badge of a run of a part of its suites. */
export function partMark(partial) {
  return element(
    "span",
    { class: "mark part", title: `selected by --${partial.why.join(", --")}` },
    partWords(partial),
  );
}

export function badge(status) {
  return element("span", { class: `badge ${status}` }, statusIcon(status), STATUS_WORDS[status]);
}
