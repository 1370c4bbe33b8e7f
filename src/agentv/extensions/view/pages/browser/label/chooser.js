// Which run is labelled, and how many of its answers.

/** @import { Api } from "../data/api.js" */

import { runWords, wholeFirst } from "../app/run_rows.js";
import { button, element } from "../dom/elements.js";
import { labelAddress, SAMPLE } from "./draw.js";

export const LISTED_RUNS = 100;

/**
 * @param {Api} api
 * @param {AbortSignal} signal
 */
export async function drawChooser(api, signal) {
  const { runs } = await api.get(["runs"], { limit: LISTED_RUNS }, signal);
  const ended = runs.filter(({ state }) => state === "finished" || state === "interrupted");
  const run = element(
    "select",
    {},
    wholeFirst(ended).map((one) => element("option", { value: one.run_id }, runWords(one))),
  );
  const sample = number(SAMPLE, 1);
  const seed = number(0, null);
  const start = () => {
    location.hash = labelAddress({
      run: run.value,
      sample: Math.max(1, Number(sample.value) || SAMPLE),
      seed: Number(seed.value) || 0,
    });
  };
  return element(
    "article",
    {},
    element("h1", { tabindex: -1 }, "Label answers"),
    element(
      "p",
      { class: "note" },
      "Answers are drawn evenly from those that the judge passed and those that it failed, in random order. What it said is hidden.",
    ),
    ended.length
      ? element(
          "div",
          { class: "panel drawchooser" },
          labelled("Run", run),
          labelled("Answers", sample),
          labelled("Seed", seed),
          button("Start", start, { class: "primary" }),
        )
      : element("p", { class: "panel" }, "No run has ended yet."),
  );
}

function number(value, least) {
  const made = element("input", { type: "number", class: "search", min: least, step: 1 });
  made.value = String(value);
  return made;
}

function labelled(words, field) {
  return element("label", {}, element("span", { class: "label" }, words), field);
}
