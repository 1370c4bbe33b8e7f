// The first page: what the run came to, how sure that is, what needs a look, and where it is good or bad.

import { severalRows } from "../data/cases.js";
import { cleared, isChosen } from "../data/choice.js";
import { count, moment, percent } from "../data/numbers.js";
import { certainty, countedWords, ifFailed, isShare } from "../data/rates.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { intervalDrawing, scoresDrawing } from "../dom/charts.js";
import { element, section } from "../dom/elements.js";
import { partMark, statusIcon } from "../dom/outcomes.js";
import { progressBar } from "../dom/progress.js";
import { inline } from "../dom/text.js";
import { about } from "./about.js";
import { since } from "./comparison.js";
import { failures } from "./failures.js";
import { byAssertion, groupTables, PARTS, SUITES, TAGS } from "./groups.js";
import { marginsOf, matrixOf, togetherWords } from "./matrix.js";
import { subjectOf } from "./subject.js";

export function overview(state) {
  const { run } = state;
  return element(
    "article",
    { class: "overview" },
    run.against ? since(state) : null,
    verdict(state),
    matrixOf(state),
    failures(state),
    marginsOf(state),
    groupTables(state, run.facts.matrix ? SUITES : PARTS),
    byAssertion(state),
    groupTables(state, TAGS),
    scores(run),
    about(run),
  );
}

// How many cases meet the rule for several samples, which is another rate than that of the samples.
function metWords({ summary }) {
  if (summary?.rule_pass_rate === undefined || summary.early_stops) return null;
  const {
    rule_pass_rate: rate,
    rule_pass_rate_interval: interval,
    rule_pass_rate_bounds: bounds,
    rule,
    cases,
    rule_judged: judged,
  } = summary;
  const sure = interval
    ? `95% CI ${percent(interval[0])} to ${percent(interval[1])}`
    : "no confidence interval: 1 cluster only";
  return `Cases that meet ${rule ? `the rule (${ruleWords(rule)})` : "their rules"}: ${percent(rate)} of ${(judged ?? cases.passed + cases.failed).toLocaleString("en")} judged (${sure}${ifFailed({ rate, bounds, errored: cases.errored })})`;
}

function ruleWords({ repeat, aggregate, threshold }) {
  if (aggregate === "mean") return `mean ≥ ${threshold} of ${repeat} samples`;
  return `${{ pass_any: "any", pass_all: "all", majority: "most" }[aggregate]} of ${repeat} samples ≥ ${threshold}`;
}

// Rows of a run that was pushed to a team's server were replaced there.
function replacedWords({ rows, time, by }) {
  return `${count(rows, "row")} of this run ${rows === 1 ? "was" : "were"} replaced on the server, last by ${by} on ${moment(time)}.`;
}

// Cases by their worst result, of those that the search and the filters find; and where they are: in the grid where a
// case ran with several targets or prompts, as they count there.
function tiles(state) {
  const { run } = state;
  const several = severalRows(run);
  const box = element("div", {});
  const tile = (status, number, choice) =>
    element(
      "li",
      {},
      element(
        "a",
        {
          class: `tile ${status}`,
          href: state.withChoice(`${state.root}/${several ? "answers" : "cases"}`, { ...choice, status }),
        },
        element("strong", {}, number),
        statusIcon(status),
        several ? `${number === "1" ? "case" : "cases"} ${STATUS_WORDS[status]}` : STATUS_WORDS[status],
      ),
    );
  state.refillTiles = () => {
    const choice = { ...state.choice, status: "", show: "", where: "" };
    const some = isChosen(choice);
    const counts = some ? (state.results?.worst ?? null) : run.counts.cases;
    const shown = STATUSES.filter((status) => counts?.[status] || (status !== "skipped" && status !== "shown"));
    box.replaceChildren(
      element(
        "ul",
        { class: "tiles" },
        shown.map((status) => tile(status, counts?.[status].toLocaleString("en") ?? "…", choice)),
      ),
      some
        ? element(
            "p",
            { class: "note counted", role: "status" },
            "Only cases that match the search and the filters. ",
            element("a", { href: state.withChoice(`${state.root}/`, cleared(state.choice)) }, "Count all cases"),
          )
        : "",
      element("p", { class: "seeall" }, element("a", { href: state.answers() }, "See every answer")),
    );
  };
  state.refillTiles();
  return box;
}

// The first heading of a page is its title; where a comparison has that, the run's own totals come under it.
function verdict(state) {
  const { run } = state;
  const rate = run.rates.run;
  return element(
    "header",
    { class: "verdict panel" },
    run.against ? null : subjectOf(run),
    run.against ? element("h2", {}, heading(run)) : element("h1", { tabindex: -1 }, heading(run)),
    run.summary?.partial ? element("p", {}, partMark(run.summary.partial)) : null,
    rate
      ? element(
          "div",
          { class: "rate" },
          element(
            "p",
            { class: "big" },
            percent(rate.rate),
            element("span", { class: "unit" }, isShare(rate) ? " passed" : " pass rate"),
          ),
          element(
            "div",
            { class: "sure" },
            rate.interval ? [intervalDrawing(rate.rate, rate.interval), scale()] : null,
            element("p", { class: "note" }, `${countedWords(rate)} (${certainty(rate)})`),
            run.facts.matrix ? element("p", { class: "note" }, togetherWords(run)) : null,
            metWords(run) ? element("p", { class: "note" }, metWords(run)) : null,
          ),
        )
      : element("p", { class: "note" }, "Nothing was graded, so there is no rate."),
    tiles(state),
    run.facts.labels
      ? element(
          "div",
          { class: "labels" },
          run.facts.labels.map((/** @type {{ text: string, warns: boolean }} */ { text, warns }) =>
            element("p", { class: warns ? "warning" : "note" }, text),
          ),
        )
      : null,
    state.afterLabels?.() ?? null,
    run.state === "running" ? progressBar(run) : null,
    run.indexed < 1
      ? element(
          "p",
          { class: "note", role: "status" },
          `Reading the run: ${Math.floor(run.indexed * 100)}% of its rows so far…`,
        )
      : null,
    run.state === "interrupted"
      ? element("p", { class: "warning" }, "This run is incomplete: the numbers cover the finished trials.")
      : null,
    run.problem ? element("p", { class: "warning" }, inline(run.problem)) : null,
    run.facts.replaced ? element("p", { class: "warning" }, inline(replacedWords(run.facts.replaced))) : null,
    holdsAll(run)
      ? null
      : element(
          "p",
          { class: "warning" },
          `These are the totals of the whole run; this page contains ${count(run.counts.trials, "trial")} of it.`,
        ),
  );
}

// Whether every trial that ended is here: a page may hold those that somebody chose.
function holdsAll(run) {
  const counts = run.summary?.trials;
  return (
    !counts ||
    run.state === "running" ||
    counts.passed + counts.failed + counts.errored + (counts.shown ?? 0) <= run.counts.trials
  );
}

function heading({ counts: { cases: counts }, state }) {
  const yet = state === "running" ? " so far" : "";
  const total = STATUSES.reduce((cases, status) => cases + counts[status], 0);
  const bad = STATUSES.filter((status) => status !== "passed" && counts[status]);
  if (bad.length)
    return bad
      .map(
        (status, place) =>
          `${counts[status].toLocaleString("en")}${place ? "" : ` of ${count(total, "case")}`} ${STATUS_WORDS[status]}`,
      )
      .join(", ")
      .concat(yet);
  if (!total) return "No cases ran";
  if (yet) return `${count(total, "case")} passed${yet}`;
  return total === 1 ? "The case passed" : `All ${total.toLocaleString("en")} cases passed`;
}

function scale() {
  return element(
    "div",
    { class: "scale", "aria-hidden": "true" },
    ["0", "25", "50", "75", "100%"].map((tick) => element("span", {}, tick)),
  );
}

function scores({ scores: columns }) {
  const judged = columns.reduce((total, [passed, failed]) => total + passed + failed, 0);
  return judged > 1
    ? section("Scores", element("div", { class: "panel" }, scoresDrawing(columns), scoresAxis()))
    : null;
}

function scoresAxis() {
  return element(
    "div",
    { class: "scale", "aria-hidden": "true" },
    ["0", "0.25", "0.5", "0.75", "1"].map((tick) => element("span", {}, tick)),
  );
}
