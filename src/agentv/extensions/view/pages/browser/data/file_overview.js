// The overview of a run out of its trials, for a file that holds all of them.

/** @import { Against, Case, Overview } from "./types.d.ts" */

import { countsOf, countsOfCases, distinctCases, isFlaky } from "./cases.js";
import { changesOf, DIRECTIONS, gainOf } from "./changes.js";
import { ClusterSums, rateOfCases } from "./rates.js";
import { isJudged, STATUSES } from "./statuses.js";
import { GROUPS, groupsOfSummary, rateOfRun } from "./summary_rates.js";

const SHARED_NAMES = 25;
const COLUMNS = 10;
const LOOKS = 8;

/**
 * @param {any} run the run of a file
 * @param {Against | null} against
 * @returns {Overview}
 */
export function overviewOf(run, against) {
  const { facts, summary, tables, cases, trials } = run;
  return {
    facts,
    summary,
    tables,
    state: summary ? "finished" : "interrupted",
    problem: "",
    indexed: 1,
    done: null,
    planned: null,
    failures: failuresOf(run),
    counts: {
      rows: countsOf(cases),
      cases: summary ? summary.cases : countsOfCases(cases),
      distinct: distinctCases(cases),
      flaky: cases.filter(isFlaky).length,
      trials: trials.length,
    },
    rates: {
      run: rateOfRun({ summary, matrix: facts.matrix }) ?? rateOfCases(cases),
      by: Object.fromEntries(GROUPS.map((name) => [name, groupsOf(run, name)])),
      assertions: assertionRates(run),
    },
    scores: scoreColumns(cases),
    against,
  };
}

function failuresOf({ failures, trials }) {
  const groups = failures.groups.map((group) => ({
    ...group,
    examples: [...new Set(group.members.map(({ number }) => trials[number].of))],
  }));
  return { groups, rerun: failures.rerun };
}

/** @returns {[string, any][]} */
function groupsOf(run, name) {
  const summed = groupsOfSummary(run.summary, name);
  return summed.length ? summed : Object.entries(countedBy(run, name));
}

function countedBy(run, name) {
  const groups = Object.create(null);
  for (const one of run.cases)
    for (const value of name === "tag" ? one.tags : [one[name]]) {
      if (value === null) continue;
      groups[value] ??= [];
      groups[value].push(one);
    }
  for (const [value, cases] of Object.entries(groups)) {
    groups[value] = { cases: countsOfCases(cases), mean_score: undefined, rate: rateOfCases(cases) };
  }
  return groups;
}

// By name where names are few, which means that cases share their assertions; else by type.
function assertionRates({ tables, trials }) {
  const names = new Set(tables.assertions.map(([, name]) => name));
  const place = names.size <= SHARED_NAMES && !names.has(null) ? 1 : 0;
  const groups = new Map();
  for (const trial of trials) {
    for (let spot = 0; spot < trial.assertions.length; spot += 2) {
      const name = tables.assertions[trial.assertions[spot]][place];
      const status = STATUSES[trial.assertions[spot + 1]];
      if (!groups.has(name)) groups.set(name, { counts: countsOf([]), sums: new ClusterSums() });
      groups.get(name).counts[status] += 1;
      groups.get(name).sums.add(trial, status);
    }
  }
  const early = tables.early.some(Boolean); // grades of samples that ended early lean to where they ended
  return [...groups].map(([name, { counts, sums }]) => ({
    name,
    types: [...new Set(tables.assertions.filter((one) => one.includes(name)).map(([type]) => type))],
    counts,
    rate: early ? null : sums.rate(),
  }));
}

// Without cases whose samples ended early: their means lean to the side on which they ended.
function scoreColumns(cases) {
  const told = cases.filter((one) => !one.early && one.score !== null && isJudged(one.status));
  const columns = Array.from({ length: COLUMNS }, () => /** @type {[number, number]} */ ([0, 0]));
  for (const one of told)
    columns[Math.min(COLUMNS - 1, Math.floor(one.score * COLUMNS + 1e-9))][one.status === "passed" ? 0 : 1] += 1;
  return columns;
}

/**
 * What changed from the base to the candidate, whose cases are matched.
 *
 * @param {any} candidate
 * @param {any} base
 * @param {Case[]} gone
 * @returns {Against}
 */
export function againstOf(candidate, base, comparison, gone) {
  const side = (run) => ({ run_id: run.facts.run_id, targets: run.tables.targets });
  return {
    base: side(base),
    candidate: side(candidate),
    comparison,
    changes: changesOf(candidate),
    directions: DIRECTIONS.map(([change, title]) => casesThatMoved(candidate.cases, change, title)),
    gone: { total: gone.length, cases: gone },
  };
}

function casesThatMoved(cases, change, title) {
  const wanted = change.split(" ");
  const found = cases.filter((one) => wanted.includes(one.change));
  const sorted = found.sort(
    (one, other) => wanted.indexOf(one.change) - wanted.indexOf(other.change) || gainOf(one, other),
  );
  return { change, title, total: found.length, cases: sorted.slice(0, LOOKS) };
}
