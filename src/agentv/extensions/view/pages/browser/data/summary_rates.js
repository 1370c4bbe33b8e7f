// Rates out of `summary.json`, which has them of a whole run and of its groups.

import { EARLY, intervalAt } from "./rates.js";

// The same out of `summary.json`, which has it of a whole run or of a group; null of one that an earlier version wrote.
export function rateOfSummary(told, of = "judged case", errored = 0, cut = null) {
  if (!told?.judged || told.pass_rate === null) return null;
  return {
    rate: told.pass_rate,
    interval: told.pass_rate_interval,
    judged: told.judged,
    clusters: told.interval_clusters,
    by: told.clustered_by,
    bounds: told.pass_rate_bounds,
    errored,
    of,
    cut,
  };
}

// A summary that an earlier version wrote has rates of cases.
export function olderRate({ cases, pass_rate_interval: interval }) {
  const judged = cases.passed + cases.failed;
  return judged
    ? { rate: cases.passed / judged, interval: interval ?? intervalAt(cases.passed / judged, judged) }
    : null;
}

// The rate of a group in the summary, and what it counts.
export function rateOfGroup(group, { summary }) {
  return rateOfSummary(
    group,
    summary?.early_stops ? EARLY : (group.rule_pass_rate ?? null) === null ? "judged trial" : "judged sample",
  );
}

/** The rate of the whole run; null of a run that was cut, and of one that an earlier version wrote. */
export function rateOfRun({ summary, matrix }) {
  const several = summary?.rule_pass_rate !== undefined;
  const of = several ? (summary.early_stops ? EARLY : "judged sample") : matrix ? "judged trial" : "judged case";
  const counts = summary?.early_stops ? summary.cases : summary?.trials;
  return rateOfSummary(summary, of, counts?.errored, summary?.cut);
}

export const GROUPS = ["suite", "target", "prompt", "variant", "tag"];

/**
 * Groups of one kind, by name.
 *
 * @returns {[string, any][]}
 */
export function groupsOfSummary(summary, name) {
  return Object.entries(summary?.[`by_${name}`] ?? {}).map(([value, group]) => [
    value,
    { cases: group.cases, rate: rateOfGroup(group, { summary }) ?? olderRate(group), mean_score: group.mean_score },
  ]);
}
