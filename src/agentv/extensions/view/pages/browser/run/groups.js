// Where a run is good or bad: by suite, target, prompt, variant, assertion and tag.

import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { rateRow, rateRows, tableOf } from "./rates.js";

export const SUITES = [["suite", "By suite"]];
export const PARTS = [["target", "By target"], ["prompt", "By prompt"], ["variant", "By variant"], ...SUITES];
export const TAGS = [["tag", "By tag"]];

export function groupTables(state, kinds) {
  return kinds.map(([name, title]) => {
    const groups = state.run.rates.by[name] ?? [];
    const enough = name === "tag" ? 1 : 2;
    if (groups.length < enough) return null;
    return section(
      title,
      groupTable(groups, (value) => state.chosen({ [name]: value }), name),
    );
  });
}

function groupTable(groups, address, what) {
  const rows = rateRows(
    groups.map(([name, { cases, rate, mean_score: mean }]) => [inline(name), cases, address(name), rate, mean]),
  );
  const titles = [what, "outcomes", "pass rate", "95% CI"];
  return tableOf(groups[0][1].mean_score === undefined ? titles : [...titles, "mean score"], rows);
}

export function byAssertion(state) {
  const groups = state.run.rates.assertions;
  if (!groups.length) return null;
  const bad = ({ counts }) => counts.failed + counts.errored;
  const rows = [...groups]
    .sort((one, other) => bad(other) - bad(one))
    .map((one) => rateRow(assertionName(one), one.counts, state.chosen({ assertion: `failed ${one.name}` }), one.rate));
  return section("By assertion", tableOf(["assertion", "grades", "pass rate", "95% CI"], rows));
}

// The type as a tag, then the name without it: a name that somebody gave looks unlike one that is made of the type.
function assertionName({ name, types }) {
  const own = types.length === 1 && name.startsWith(`${types[0]}: `) ? name.slice(types[0].length + 2) : name;
  return [
    types.map((type) => [element("code", { class: "tag" }, inline(type)), " "]),
    types.includes(own) ? null : inline(own),
  ];
}
