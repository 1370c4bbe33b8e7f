// Cases: what their samples come to, and how many there are of each outcome.

import { count } from "./numbers.js";

// `early`, of a case whose samples may end early: why they did, and bounds of its rate; its mean score leans to one side.
export function caseOf(trials, status, early = null) {
  const { id, file, suite, path, target, prompt, variant, tags, teaser, sha, order } = trials[0];
  return {
    id,
    file,
    suite,
    path,
    target,
    prompt,
    variant,
    tags,
    teaser,
    sha,
    order,
    trials,
    status,
    early,
    score: trials[0].score,
    base: null,
    change: null,
  };
}

// The mean of what was judged, and the reason of the sample that did worst.
export function settle(one) {
  one.trials.sort((first, second) => first.sample - second.sample);
  const scores = one.trials.map((trial) => trial.score).filter((value) => value !== null);
  one.score = scores.length ? scores.reduce((sum, value) => sum + value, 0) / scores.length : null;
  one.teaser = (one.trials.find((trial) => trial.status === one.status) ?? one.trials[0]).teaser;
}

export function sum(values) {
  const told = values.filter((value) => value !== null && value !== undefined);
  return told.length ? told.reduce((total, value) => total + value, 0) : null;
}

export function passedSamples(one) {
  return one.trials.filter((trial) => trial.status === "passed").length;
}

export function isFlaky(one) {
  const judged = one.trials.filter((trial) => trial.status === "passed" || trial.status === "failed").length;
  return passedSamples(one) > 0 && passedSamples(one) < judged;
}

const WORST = ["errored", "failed", "skipped", "shown", "passed"];

/** Whether cases of a run have several rows: one for each target, prompt and variant. */
export function severalRows({ counts: { distinct, rows } }) {
  return distinct !== Object.values(rows).reduce((all, number) => all + number, 0);
}

export function countsOf(rows) {
  const counts = { passed: 0, failed: 0, errored: 0, skipped: 0, shown: 0 };
  for (const one of rows) counts[one.status] += 1;
  return counts;
}

/** What each case came to: the worst of its rows. @param {any[]} rows */
export function countsOfCases(rows) {
  return countsOf([...Map.groupBy(rows, caseKey).values()].map((cells) => together(cells.map(({ status }) => status))));
}

// A case has a row for each target, prompt and variant that it ran with.
export function distinctCases(rows) {
  return new Set(rows.map(caseKey)).size;
}

/** @param {{ file?: number, id: string }} one @returns {string} */
export function caseKey({ file, id }) {
  return `${file} ${id}`;
}

/** How a case ended in several columns; `different`: they disagree. @param {string[]} statuses */
export function together(statuses) {
  const ended = new Set(statuses);
  const graded = ["passed", "failed", "errored"].filter((status) => ended.has(status));
  return { status: WORST.find((status) => ended.has(status)), different: graded.length > 1 };
}

/** The variables of a trial as texts, after them the metadata of its case. @returns {Record<string, string>} */
export function variablesOf({ vars, metadata }) {
  const more = Object.entries(metadata ?? {}).map(([name, value]) => [`metadata.${name}`, value]);
  const all = [...Object.entries(vars ?? {}), ...more];
  return Object.fromEntries(
    all.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** What the user said last; what there is at all, where nobody asked. */
export function askedIn({ input }) {
  return ((input ?? []).filter(({ role }) => role === "user").at(-1) ?? input?.at(-1))?.text ?? "";
}

// `12 cases`, `12 cases in 48 rows`.
export function casesAndRows(cases, rows) {
  return cases === rows ? count(cases, "case") : `${count(cases, "case")} in ${count(rows, "row")}`;
}
