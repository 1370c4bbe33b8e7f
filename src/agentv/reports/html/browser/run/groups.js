// Where a run is good or bad: by suite, target, prompt, variant, assertion and tag.

import { countsOf, countsOfCases } from "../data/cases.js";
import { ClusterSums, rateOfCases } from "../data/rates.js";
import { STATUSES } from "../data/statuses.js";
import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { MOST_GROUPS, olderRate, rateOfGroup, rateRow, rateRows, tableOf } from "./rates.js";

export const SUITES = [["suite", "By suite", "by_suite"]];
export const PARTS = [
  ["target", "By target", "by_target"],
  ["prompt", "By prompt", "by_prompt"],
  ["variant", "By variant", "by_variant"],
  ...SUITES,
];
export const TAGS = [["tag", "By tag", "by_tag"]];

export function groupTables(state, kinds) {
  const { run } = state;
  return kinds.map(([name, title, key]) => {
    const summed = Object.entries(run.summary?.[key] ?? {});
    const groups = summed.length ? summed : Object.entries(countedBy(run, name));
    const enough = name === "tag" ? 1 : 2;
    return groups.length < enough
      ? null
      : section(
          title,
          groupTable(run, groups, (value) => state.chosen({ [name]: value }), name),
        );
  });
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

function groupTable(run, groups, address, what) {
  const told = groups.map(([name, group]) => [
    inline(name),
    group.cases,
    address(name),
    group.rate ?? rateOfGroup(group, run) ?? olderRate(group),
    group.mean_score,
  ]);
  const rows = rateRows(told);
  const titles = [what, "outcomes", "pass rate", "95% CI"];
  return tableOf(groups[0][1].mean_score === undefined ? titles : [...titles, "mean score"], rows);
}

// By name where names are few, which means that cases share their assertions; else by type.
export function byAssertion(state) {
  const { run } = state;
  const names = new Set(run.tables.assertions.map(([, name]) => name));
  const place = names.size <= MOST_GROUPS && !names.has(null) ? 1 : 0;
  const groups = new Map();
  for (const trial of run.trials) {
    for (let spot = 0; spot < trial.assertions.length; spot += 2) {
      const name = run.tables.assertions[trial.assertions[spot]][place];
      const status = STATUSES[trial.assertions[spot + 1]];
      if (!groups.has(name)) groups.set(name, { counts: countsOf([]), sums: new ClusterSums() });
      groups.get(name).counts[status] += 1;
      groups.get(name).sums.add(trial, status);
    }
  }
  if (!groups.size) return null;
  const early = run.tables.early.some(Boolean); // grades of samples that ended early lean to where they ended
  const bad = (counts) => counts.failed + counts.errored;
  const rows = [...groups]
    .sort((one, other) => bad(other[1].counts) - bad(one[1].counts))
    .map(([name, { counts, sums }]) =>
      rateRow(
        assertionName(run, name),
        counts,
        state.chosen({ assertion: `failed ${name}` }),
        early ? null : sums.rate(),
      ),
    );
  return section("By assertion", tableOf(["assertion", "grades", "pass rate", "95% CI"], rows));
}

// The type as a tag, then the name without it: a name that somebody gave looks unlike one that is made of the type.
function assertionName(run, name) {
  const types = [...new Set(run.tables.assertions.filter((one) => one.includes(name)).map(([type]) => type))];
  const own = types.length === 1 && name.startsWith(`${types[0]}: `) ? name.slice(types[0].length + 2) : name;
  return [
    types.map((type) => [element("code", { class: "tag" }, inline(type)), " "]),
    types.includes(own) ? null : inline(own),
  ];
}
