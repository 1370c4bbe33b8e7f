// What changed from another run: the verdict as it was computed, then the cases, in both directions.

import { CHANGES, changesOf, DIRECTIONS } from "../data/changes.js";
import { count, score } from "../data/numbers.js";
import { element, folded, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { LOOKS, underneath } from "../list/case_words.js";
import { differenceDrawing, differenceScale } from "./differences.js";
import { someNames } from "./subject.js";

const VERDICT_ICONS = { better: "passed", worse: "failed" };
const GONE = 500;

export function since(state) {
  const { run, base, comparison } = state;
  return [
    element(
      "header",
      { class: `verdict panel compared ${VERDICT_ICONS[comparison?.verdict] ?? ""}` },
      element(
        "ul",
        { class: "facts subject" },
        [
          ["base", base],
          ["candidate", run],
        ].map(([what, one]) =>
          element(
            "li",
            {},
            element("span", { class: "label" }, what),
            " ",
            inline(one.facts.run_id),
            element("span", { class: "label" }, " on "),
            someNames(one.tables.targets),
          ),
        ),
      ),
      comparison ? verdictOf(comparison) : element("h1", { tabindex: -1 }, "Two runs"),
      element(
        "ul",
        { class: "changes" },
        changesOf(run).map(([change, label]) =>
          element("li", {}, element("a", { class: `mark ${change}`, href: state.chosen({ change }) }, label)),
        ),
      ),
      comparison ? basisOf(comparison) : null,
    ),
    element(
      "div",
      { class: "directions" },
      DIRECTIONS.map(([change, title]) => directionOf(state, change, title)),
    ),
    goneOf(state.gone),
  ];
}

function verdictOf({ verdict, finding, difference }) {
  const said = verdict ? `${verdict[0].toUpperCase()}${verdict.slice(1)}` : "No verdict";
  return [
    element("h1", { tabindex: -1 }, said),
    element("p", { class: "finding" }, inline(finding)),
    difference?.interval ? element("div", { class: "span" }, differenceDrawing(difference), differenceScale()) : null,
  ];
}

function basisOf({ basis, notes }) {
  const list = (lines) =>
    element(
      "ul",
      {},
      lines.map((line) => element("li", {}, inline(line))),
    );
  return [
    basis.length ? element("div", { class: "basis" }, list(basis)) : null,
    notes.length ? element("div", { class: "warning" }, list(notes)) : null,
  ];
}

function directionOf(state, change, title) {
  const wanted = change.split(" ");
  const found = state.run.cases.filter((one) => wanted.includes(one.change));
  const shown = [...found]
    .sort((one, other) => wanted.indexOf(one.change) - wanted.indexOf(other.change) || gainOf(one, other))
    .slice(0, LOOKS);
  return section(
    `${title}: ${found.length.toLocaleString("en")}`,
    found.length
      ? element(
          "ol",
          { class: "panel looks" },
          shown.map((one) => element("li", {}, movedLink(state, one))),
        )
      : element("p", { class: "panel note" }, "None."),
    found.length > LOOKS
      ? element(
          "p",
          { class: "after" },
          element("a", { href: state.chosen({ change }) }, `Show all ${found.length.toLocaleString("en")}`),
        )
      : null,
  );
}

// The largest change of the score first.
function gainOf(one, other) {
  const moved = ({ score: now, base }) => Math.abs((now ?? 0) - (base.score ?? 0));
  return moved(other) - moved(one);
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

function goneOf(gone) {
  if (!gone.length) return null;
  const list = () =>
    element(
      "ul",
      {},
      gone
        .slice(0, GONE)
        .map((one) =>
          element(
            "li",
            {},
            inline([one.suite, one.id, one.prompt, one.target, one.variant].filter(Boolean).join(" · ")),
          ),
        ),
    );
  return folded(
    `${count(gone.length, "case")} only in the other run`,
    () => [
      list(),
      gone.length > GONE
        ? element("p", { class: "note" }, `The first ${GONE} of ${gone.length.toLocaleString("en")}.`)
        : null,
    ],
    { class: "panel gone" },
  );
}
