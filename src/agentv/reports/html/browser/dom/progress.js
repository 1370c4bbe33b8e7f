// How far a run is.

import { element } from "./elements.js";

/** @param {{ done: number | null, planned: number | null }} run */
export function progressBar({ done, planned }) {
  const words = planned
    ? `${(done ?? 0).toLocaleString("en")} of ${planned.toLocaleString("en")} trials`
    : `${(done ?? 0).toLocaleString("en")} trials`;
  return element(
    "span",
    { class: "progress" },
    element("progress", {
      max: planned || 1,
      value: planned ? Math.min(done ?? 0, planned) : null,
      "aria-label": "Progress",
    }),
    element("span", { class: "small" }, words),
  );
}
