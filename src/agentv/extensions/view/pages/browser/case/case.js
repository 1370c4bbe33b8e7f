// The page of one case: its verdict, its checks, what went in and what came out.

import { passedSamples } from "../data/cases.js";
import { hasMoved } from "../data/changes.js";
import { fencedCode } from "../data/evidence.js";
import { apart, duration, moment, money, percent, tokens } from "../data/numbers.js";
import { intervalAt } from "../data/rates.js";
import { prettyJson, textOf } from "../data/texts.js";
import { viewBox, viewButtons } from "../dom/answer_view.js";
import { intervalDrawing, scoreBar } from "../dom/charts.js";
import { element, folded, hidden, section } from "../dom/elements.js";
import { asMarkdown, looksLikeMarkdown, markdownButton } from "../dom/markdown.js";
import { badge, statusIcon } from "../dom/outcomes.js";
import { commandLine, copyButton, inline, longText } from "../dom/text.js";
import { marks } from "../list/case_words.js";
import { pairs } from "../run/about.js";
import { earlierTrial, sideBySide, sinceThen } from "./answers.js";
import { besideOthers } from "./beside.js";
import { checksOf } from "./checks.js";
import { Evidence } from "./evidence.js";
import { fileChangesOf } from "./file_changes.js";
import { timelineOf } from "./timeline.js";
import { answerText, code, inputOf, thoughtsOf, transcriptOf, turnsOf } from "./transcript.js";

/** @import { Case } from "../data/types.d.ts" */

/**
 * The page of a case, once its data have arrived.
 *
 * @param {any} state the page as a whole
 * @param {Case} one
 * @param {number} sample the sample that the address asks for; 0: any
 * @param {AbortSignal} signal
 */
export async function casePage(state, one, sample, signal) {
  const trial = trialOf(one, sample);
  const moved = hasMoved(one);
  const [told, before, others] = await Promise.all([
    state.source.whole(trial, signal),
    one.base ? state.source.whole(earlierTrial(one, trial), signal) : null,
    state.source.casesOf([one.id], signal),
  ]);
  const evidence = new Evidence(told);
  const since = sinceThen(one, trial, told, before);
  return element(
    "article",
    { class: "case" },
    caseHead(state, one, trial, told),
    sample && trial.sample !== sample
      ? element(
          "p",
          { class: "warning" },
          `The link asks for sample ${sample}, which this ${state.source.kind} does not contain. This is sample ${trial.sample}.`,
        )
      : null,
    one.trials.length > 1 || one.early ? samples(state, one, trial) : null,
    problem(told),
    moved ? since : null,
    checksOf(told, evidence),
    inputOf(told),
    answer(told, evidence),
    reference(told),
    besideOthers(state, one, told, others),
    fileChangesOf(told),
    timelineOf(told),
    moved ? null : since,
    transcriptOf(told),
    turnsOf(told),
    retries(told),
    facts(trial, told),
  );
}

export function trialOf(one, sample) {
  return one.trials.find((other) => other.sample === sample) ?? one.trials[0];
}

function caseHead(state, one, trial, told) {
  const where = told.path ? `${told.path}${told.line ? `:${told.line}` : ""}` : null;
  return element(
    "header",
    { class: "panel casehead" },
    element(
      "nav",
      { class: "crumbs", "aria-label": "Place" },
      element("a", { href: state.home() }, "Overview"),
      element("a", { href: state.chosen({ suite: one.suite }) }, inline(one.suite)),
      state.steps(one),
    ),
    element("h1", { tabindex: -1 }, inline(one.id)),
    told.description ? element("div", { class: "description" }, longText(told.description)) : null,
    element(
      "div",
      { class: "outcome" },
      badge(one.status),
      marks(one),
      trial.score === null
        ? null
        : element(
            "span",
            { class: "reached" },
            one.trials.length > 1 ? `sample ${trial.sample}: ` : null,
            reached(trial),
            scoreBar(trial.score, trial.threshold, trial.status),
          ),
    ),
    element(
      "ul",
      { class: "facts" },
      [
        ["target", one.target],
        ["prompt", one.prompt],
        ["variant", one.variant],
        ["took", duration(trial.duration)],
        ["cost", trial.cost === null ? null : money(trial.cost)],
        ["tokens", tokens(told.tokens)],
        ["file", where],
        ["conversation", told.conversation],
      ]
        .filter(([, value]) => value)
        .map(([name, value]) => element("li", {}, element("span", { class: "label" }, name), " ", inline(value))),
    ),
    told.rerun ? commandLine("Run this case again", told.rerun) : null,
    told.rerun ? (state.runAgain?.(trial) ?? null) : null,
    one.tags.length
      ? element(
          "ul",
          { class: "tags" },
          one.tags.map((tag) =>
            element("li", {}, element("a", { class: "tag", href: state.chosen({ tag }) }, inline(tag))),
          ),
        )
      : null,
  );
}

function reached(trial) {
  const [value, needed] = apart(trial.score, trial.threshold);
  if (trial.threshold <= 0) return `score ${value}`;
  if (trial.status === "failed" && trial.score >= trial.threshold - 1e-9)
    return `score ${value}, but a required check did not pass`;
  return `score ${value}, needs ${needed}`;
}

function samples(state, one, shown) {
  const passed = passedSamples(one);
  const judged = one.trials.filter((trial) => trial.status === "passed" || trial.status === "failed").length;
  const interval = one.early ? one.early.bounds : judged ? intervalAt(passed / judged, judged) : null;
  return element(
    "div",
    { class: "panel samples" },
    element(
      "p",
      {},
      `${passed} of ${one.trials.length} samples passed`,
      interval
        ? ` (${surely(one)}: ${percent(interval[0])} to ${percent(interval[1])}${one.early ? `, each wrong with a chance of ${percent(one.early.alpha)} at most` : ""})`
        : null,
    ),
    one.early?.why === "undecided"
      ? element("p", {}, "They did not decide the case: it uses the share that passed, which is not proof.")
      : null,
    interval ? intervalDrawing(passed / judged, interval, {}, surely(one)) : null,
    element(
      "nav",
      { "aria-label": "Samples" },
      one.trials.map((trial) =>
        element(
          "a",
          { class: "sample", href: state.address(one, trial.sample), "aria-current": trial === shown ? "true" : null },
          statusIcon(trial.status),
          hidden("sample "),
          String(trial.sample),
        ),
      ),
    ),
  );
}

// Samples that end where they look decided lean to that side, which an ordinary interval does not know.
function surely(one) {
  return one.early ? "anytime-valid bounds of the rate" : "95% CI of the rate";
}

function problem(told) {
  return told.error
    ? element(
        "div",
        { class: "panel problem" },
        element("h2", {}, "Why there is no verdict"),
        element("p", {}, element("code", {}, inline(told.error.code))),
        longText(told.error.message),
      )
    : null;
}

function answer(told, evidence) {
  const thoughts = thoughtsOf(told);
  if (told.output === undefined && told.error) return thoughts ? section("Answer", thoughts) : null;
  return section("Answer", element("div", { class: "stack" }, thoughts, answerPanel(told, evidence)));
}

function answerPanel(told, evidence) {
  if (told.output === undefined) return element("p", { class: "panel note" }, "The answer is empty.");
  return element(
    "div",
    { class: "panel" },
    element(
      "div",
      { class: "corner" },
      isCode(told.output)
        ? viewButtons(["code", "markdown", "plain"], "code")
        : offersMarkdown(told)
          ? markdownButton()
          : null,
      copyButton(textOf(told.output)),
    ),
    evidence.place(answerOf(told.output)),
  );
}

// An answer that is one block of code is usually shown as that, whatever it is marked with.
function answerOf(output) {
  if (!isCode(output)) return answerText(output);
  const { language, code: inside } = fencedCode(output);
  const asCode = () =>
    element("div", { class: "codeanswer" }, element("p", { class: "who" }, language || "code"), code(inside));
  return viewBox({ code: asCode, markdown: () => asMarkdown(output), plain: () => longText(output) }, "code");
}

function isCode(output) {
  return typeof output === "string" && fencedCode(output) !== null;
}

function offersMarkdown({ output }) {
  const text = textOf(output);
  return prettyJson(text) === null && looksLikeMarkdown(text);
}

function reference(told) {
  const expected = (told.expected ?? []).map((message) => textOf(message.text)).join("\n\n");
  const criteria = told.criteria
    ? section("Criteria", element("div", { class: "panel" }, longText(told.criteria, { class: "prose" })))
    : null;
  return [criteria, expected ? section("Reference", sideBySide(expected, told.output, ["Reference", "Answer"])) : null];
}

function retries(told) {
  if (!told.retries) return null;
  return section(
    "Retried calls",
    element(
      "ol",
      { class: "panel" },
      told.retries.map((retry) =>
        element(
          "li",
          {},
          element("code", {}, inline(retry.code)),
          ` after ${duration(retry.duration_ms)}, waited ${duration(retry.waited_ms)}: `,
          inline(retry.message),
        ),
      ),
    ),
  );
}

function facts(trial, told) {
  const rows = [
    ["Finished", told.timestamp ? moment(told.timestamp) : null],
    ["Sample", trial.repeat > 1 ? `${trial.sample} of ${trial.repeat}, combined by ${told.aggregate}` : null],
    ["Calls", told.attempts],
    ["First token after", told.time_to_first_token_ms === undefined ? null : duration(told.time_to_first_token_ms)],
    ["Tokens of judges", tokens(told.judge_tokens)],
    ["Cost of the target", told.cost_usd === undefined ? null : money(told.cost_usd)],
    ["Cost of judges", told.judge_cost_usd === undefined ? null : money(told.judge_cost_usd)],
    ["Cost of the simulated user", told.user_cost_usd === undefined ? null : money(told.user_cost_usd)],
    ["Answer", told.reused ? "reused from an earlier run or a recording, at no cost" : null],
    ["Notes", told.notes ? told.notes.join("; ") : null],
    ["Case hash", told.sha256],
    ["Key", told.key],
  ];
  return section(
    "More",
    element(
      "div",
      { class: "stack" },
      told.metadata ? folded("Metadata", () => code(JSON.stringify(told.metadata, null, 2)), { class: "panel" }) : null,
      pairs(rows),
    ),
  );
}
