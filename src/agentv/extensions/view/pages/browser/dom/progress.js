// The state of a run, and how far it is.

import { element } from "./elements.js";

const STATE_WORDS = { running: "running", interrupted: "interrupted", unreadable: "cannot be read" };

export function stateMark({ state }) {
  return element("span", { class: `state ${state}` }, STATE_WORDS[state] ?? state);
}

/** @param {{ state: string, done: number | null, planned: number | null }} run */
export function progressBar(run) {
  const { done, planned } = run;
  const some = (done ?? 0).toLocaleString("en");
  return element(
    "span",
    { class: "progress" },
    stateMark(run),
    element("progress", {
      max: planned || 1,
      value: planned ? Math.min(done ?? 0, planned) : null,
      "aria-label": "Progress",
    }),
    element(
      "span",
      { class: "small" },
      planned ? `${some} of ${planned.toLocaleString("en")} trials` : `${some} trials`,
    ),
  );
}
