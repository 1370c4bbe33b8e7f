// What changed from another run: the verdict as it was computed, then the cases, in both directions.

import { CHANGES, changeWords } from "../data/changes.js";
import { count, score } from "../data/numbers.js";
import { element, folded, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { underneath } from "../list/case_words.js";
import { differenceDrawing, differenceScale, usageTable } from "./differences.js";
import { someNames } from "./subject.js";

const VERDICT_ICONS = { better: "passed", worse: "failed" };
const GONE = 500;

export function since(state) {
  const { against } = state.run;
  return [
    verdictPanel(state, against),
    element(
      "div",
      { class: "directions" },
      against.directions.map((one) => directionOf(state, one)),
    ),
    goneOf(against.gone),
  ];
}

/** The two runs, the verdict and what it is based on. */
export function verdictPanel(state, against) {
  const { comparison } = against;
  const sides = [
    ["base", against.base],
    ["candidate", against.candidate],
  ];
  return element(
    "header",
    { class: `verdict panel compared ${VERDICT_ICONS[comparison?.verdict] ?? ""}` },
    element(
      "ul",
      { class: "facts subject" },
      sides.map(([what, one]) => sideOf(state, what, one)),
    ),
    comparison ? verdictOf(comparison) : element("h1", { tabindex: -1 }, "Two runs"),
    element(
      "ul",
      { class: "changes" },
      against.changes.map((one) =>
        element("li", {}, markOf(one[0], changeWords(one), state.chosen({ change: one[0] }))),
      ),
    ),
    comparison ? basisOf(comparison) : null,
  );
}

function sideOf(state, what, one) {
  const href = state.runAddress?.(one.run_id) ?? null;
  const name = inline(one.run_id);
  return element(
    "li",
    {},
    element("span", { class: "label" }, what),
    " ",
    href ? element("a", { href }, name) : name,
    one.targets.length ? [element("span", { class: "label" }, " on "), someNames(one.targets)] : null,
  );
}

function markOf(change, label, href) {
  return element(href ? "a" : "span", { class: `mark ${change}`, href }, label);
}

function verdictOf({ sentence, verdict, finding, difference }) {
  const said = verdict ? `${verdict[0].toUpperCase()}${verdict.slice(1)}` : "No verdict";
  return [
    element("h1", { tabindex: -1 }, inline(sentence || said)),
    element("p", { class: "finding" }, inline(sentence ? `${said}: ${finding}` : finding)),
    difference?.interval ? element("div", { class: "span" }, differenceDrawing(difference), differenceScale()) : null,
  ];
}

function basisOf({ basis, notes, usage }) {
  const list = (lines) =>
    element(
      "ul",
      {},
      lines.map((line) => element("li", {}, inline(line))),
    );
  return [
    basis.length ? element("div", { class: "basis" }, list(basis)) : null,
    usageTable(usage, "base", "candidate"),
    notes.length ? element("div", { class: "warning" }, list(notes)) : null,
  ];
}

function directionOf(state, { change, title, total, cases }) {
  const all = total > cases.length ? state.chosen({ change }) : null;
  return section(
    `${title}: ${total.toLocaleString("en")}`,
    total
      ? element(
          "ol",
          { class: "panel looks" },
          cases.map((one) => element("li", {}, movedLink(state, one))),
        )
      : element("p", { class: "panel note" }, "None."),
    all
      ? element("p", { class: "after" }, element("a", { href: all }, `Show all ${total.toLocaleString("en")}`))
      : null,
  );
}

function movedLink(state, one) {
  return element(
    "a",
    { class: "look", href: state.address(one) },
    statusIcon(one.status),
    element("span", { class: "id" }, inline(one.id)),
    element("span", { class: "score" }, `${score(one.base.score)} → ${score(one.score)}`),
    element(
      "span",
      { class: "why" },
      element("span", { class: `mark ${one.change}` }, CHANGES[one.change]),
      inline(underneath(one)),
    ),
  );
}

export function goneOf({ total, cases }) {
  if (!total) return null;
  const list = () =>
    element(
      "ul",
      {},
      cases
        .slice(0, GONE)
        .map((one) =>
          element(
            "li",
            {},
            inline([one.suite, one.id, one.prompt, one.target, one.variant].filter(Boolean).join(" · ")),
          ),
        ),
    );
  const more = () => element("p", { class: "note" }, `The first ${GONE} of ${total.toLocaleString("en")}.`);
  return folded(`${count(total, "case")} only in the other run`, () => [list(), total > GONE ? more() : null], {
    class: "panel gone",
  });
}
