// Targets, prompts and variants side by side. All numbers were computed for all reports; none is computed here.

import { count, duration, money, percent } from "../data/numbers.js";
import { CUTS } from "../data/rates.js";
import { rateOfGroup } from "../data/summary_rates.js";
import { intervalDrawing } from "../dom/charts.js";
import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { differenceDrawing, differenceScale, usageTable } from "./differences.js";
import { caseWords, countsTrials, outcomeWords, rateRows, tableOf, unitWords } from "./rates.js";

const SHOWN_AS = { better: ["passed", "better"], worse: ["failed", "worse"] };

// What is compared: a grid where more than one of them are several, else the table of the one; then the comparisons.
export function matrixOf(state) {
  const { matrix } = state.run.facts;
  if (!matrix) return null;
  const several = severalOf(matrix);
  const title = listed(several.map((name) => `${name}s`));
  return [
    several.length > 1
      ? section(`${title[0].toUpperCase()}${title.slice(1)}`, gridOf(state, matrix))
      : besideTables(state, several),
    comparisonsOf(state, matrix),
  ];
}

// Each of them alone, where the grid has them together.
export function marginsOf(state) {
  const { matrix } = state.run.facts;
  const several = matrix ? severalOf(matrix) : [];
  return several.length > 1 ? besideTables(state, several) : null;
}

function severalOf(matrix) {
  return ["target", "prompt", "variant"].filter((name) => matrix[`${name}s`].length > 1);
}

function listed(words) {
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : (words[0] ?? "");
}

// What a rate of the whole run puts together, since cases and trials are not the same then.
export function togetherWords({ facts, summary }) {
  const several = listed(severalOf(facts.matrix).map((name) => count(facts.matrix[`${name}s`].length, name)));
  return `${several} together, ${count(summary.trials.total, "trial")}: ${outcomeWords(summary.trials)}. A case passes if it passes with each of them.`;
}

function besideTables(state, several) {
  return several.map((name) => section(`By ${name}`, besideTable(state, name, state.run.facts.matrix[`by_${name}`])));
}

function gridOf(state, matrix) {
  const { targets, prompts, variants } = matrix;
  const cells = new Map(matrix.cells.map((one) => [JSON.stringify([one.target, one.prompt, one.variant]), one]));
  const sides = prompts.flatMap((prompt) => variants.map((variant) => ({ prompt, variant })));
  const shown = targets.length > 1 ? sides : prompts.map((prompt) => ({ prompt }));
  const columns =
    targets.length > 1
      ? targets.map((target) => ({ target }))
      : variants.map((variant) => ({ variant, target: targets[0] }));
  const name = ({ target, variant }) => (targets.length > 1 ? target : (variant ?? "no variant"));
  const side = ({ prompt, variant }) =>
    [
      prompts.length > 1 ? (prompt ?? "no prompt") : null,
      targets.length > 1 && variants.length > 1 ? (variant ?? "no variant") : null,
    ]
      .filter(Boolean)
      .join(" · ");
  const head = element(
    "tr",
    {},
    element("td", {}),
    columns.map((one) => element("th", { scope: "col" }, inline(name(one)))),
  );
  const rows = shown.map((row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, inline(side(row))),
      columns.map((column) => {
        const place = { ...row, ...column };
        return element(
          "td",
          {},
          element("span", { class: "col", "aria-hidden": "true" }, inline(name(column))),
          cellOf(state, place, cells.get(JSON.stringify([place.target, place.prompt, place.variant]))),
        );
      }),
    ),
  );
  return element(
    "div",
    { class: "panel scrolls", tabindex: 0, role: "group", "aria-label": "Matrix" },
    element("table", { class: "matrix" }, element("thead", {}, head), element("tbody", {}, rows)),
  );
}

function cellOf(state, { target, prompt, variant }, cell) {
  if (!cell) return "–";
  const { totals, usage } = cell;
  const address = state.chosen({
    target,
    ...(prompt === null ? {} : { prompt }),
    ...(variant === null ? {} : { variant }),
  });
  const { pass_rate: rate, pass_rate_interval: interval } = totals;
  const of = rateOfGroup(totals, state.run);
  const units = countsTrials(totals.cases, of);
  return [
    element("a", { class: "cellrate", href: address }, rate === null ? outcomeWords(totals.cases) : percent(rate)),
    units ? element("span", { class: "small" }, unitWords(of)) : null,
    rate === null
      ? null
      : element("span", { class: "small" }, units ? caseWords(totals.cases) : outcomeWords(totals.cases)),
    interval
      ? [
          intervalDrawing(rate, interval),
          element("span", { class: "small" }, `${percent(interval[0])} to ${percent(interval[1])}`),
        ]
      : null,
    element("span", { class: "small" }, usageWords(usage)),
  ];
}

function usageWords(usage) {
  const facts = [
    priceOf(usage),
    usage.latency_ms === null ? null : `median ${duration(usage.latency_ms)}`,
    usage.latency_p95_ms === null ? null : `p95 ${duration(usage.latency_p95_ms)}`,
  ];
  return facts.filter(Boolean).join(" · ");
}

// What an answer costs, also one that this run did not pay for.
function priceOf(usage) {
  if (usage.cost_per_answer_usd === null) return usage.unpriced_trials ? "cost unknown" : null;
  const some =
    usage.priced_answers < usage.answers
      ? ` (${usage.priced_answers.toLocaleString("en")} of ${usage.answers.toLocaleString("en")})`
      : "";
  return `${money(usage.cost_per_answer_usd)} per answer${some}`;
}

function besideTable(state, what, groups) {
  const rows = rateRows(
    groups.map(({ name, totals }) => [
      inline(name ?? `no ${what}`),
      totals.cases,
      name === null ? state.chosen({}) : state.chosen({ [what]: name }),
      rateOfGroup(totals, state.run),
      totals.mean_score,
    ]),
  );
  for (const [place, row] of rows.entries())
    row.querySelector("th").append(element("span", { class: "small usage" }, usageWords(groups[place].usage)));
  return tableOf([what, "outcomes", "pass rate", "95% CI", "mean score"], rows);
}

function comparisonsOf(state, { comparisons, tests }) {
  if (comparisons === null)
    return section(
      "Compared",
      element(
        "p",
        { class: "panel note" },
        `Not compared: ${CUTS[state.run.summary?.cut] ?? "the run was cut short"}.`,
      ),
    );
  if (!comparisons.length) return null;
  return section(
    "Compared",
    element("ul", { class: "panel compares" }, comparisons.map(comparedRow)),
    element(
      "p",
      { class: "after note" },
      `Compared case by case: the same cases ${sidesOf(comparisons)}.`,
      tests > 1 ? ` P-values and intervals are corrected for ${tests.toLocaleString("en")} tests (Holm).` : null,
    ),
  );
}

// `on both targets`, `with both prompts`.
function sidesOf(comparisons) {
  const words = [...new Set(comparisons.map(({ by }) => by))].map(
    (by) => `${by === "target" ? "on" : "with"} both ${by}s`,
  );
  return words.length > 1 ? "on both sides" : words[0];
}

function comparedRow({ base, candidate, verdict, sentence, details, measures, shown_by: shown, usage_rows: usage }) {
  const [status, mark] = SHOWN_AS[verdict] ?? ["", "same"];
  const one = measures.find(({ measure }) => shown.includes(measure)) ?? measures[0];
  const level = one ? `${Number((one.confidence * 100).toPrecision(4))}%` : "";
  return element(
    "li",
    {},
    element(
      "p",
      {},
      element("span", { class: `mark ${mark} ${status}` }, verdict ?? "not compared"),
      " ",
      inline(sentence),
    ),
    one?.interval ? element("div", { class: "span" }, differenceDrawing({ ...one, level }), differenceScale()) : null,
    details ? element("div", { class: "small" }, inline(details)) : null,
    usageTable(usage, base, candidate),
  );
}
