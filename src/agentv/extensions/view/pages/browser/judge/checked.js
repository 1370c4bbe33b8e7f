// The check of one judge: how often it agrees with people, the corrected pass rate, and where they differ.

import { count, fixed, percent } from "../data/numbers.js";
import { intervalDrawing } from "../dom/charts.js";
import { element } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { labelAddress } from "../label/draw.js";
import { judgeAddress } from "./address.js";
import { disagreements } from "./disagreements.js";

/**
 * @param {any} judge as `agentv judge check --json` says it
 * @param {any} told the whole answer
 * @param {{ single: boolean, canLabel: boolean }} page
 */
export function checkedJudge(judge, { run }, { single, canLabel }) {
  const { labels, confusion_matrix: matrix } = judge;
  const answers = Object.values(matrix).reduce((sum_, number) => sum_ + number, 0);
  return element(
    "section",
    { class: "judge" },
    element(
      "h2",
      {},
      single
        ? inline(judge.assertion)
        : element("a", { href: judgeAddress({ run: run ?? "", assertion: judge.assertion }) }, inline(judge.assertion)),
      element(
        "span",
        { class: "note" },
        " judge ",
        inline(judge.judge ?? judge.model),
        `: ${count(labels.labels, "label")}`,
        labels.people > 1 ? ` by ${labels.people} people` : "",
      ),
    ),
    element(
      "div",
      { class: "panel" },
      judge.sentence ? element("p", { class: "judgesays" }, inline(judge.sentence)) : null,
      answers ? rates(judge, answers) : null,
      notes(judge.notes),
      answers ? confusion(matrix) : null,
      answers ? accuracyOf(judge) : null,
      canLabel && run
        ? element(
            "p",
            { class: "after" },
            element(
              "a",
              { href: labelAddress({ run, assertion: judge.assertion, sample: answers + 60 }) },
              answers ? "Label more answers" : "Label answers",
            ),
          )
        : null,
    ),
    disagreements(judge.disagreements),
  );
}

function notes(lines) {
  if (!lines.length) return null;
  return element(
    "ul",
    { class: "judgenotes" },
    lines.map((line) =>
      element("li", { class: line.startsWith("warning: ") ? "warning" : "note" }, inline(noteWords(line))),
    ),
  );
}

function noteWords(line) {
  const said = line.replace(/^warning: /, "");
  return `${said[0].toUpperCase()}${said.slice(1)}.`;
}

function rates(judge, answers) {
  const { judge_pass_rate: rate, corrected_pass_rate: corrected, transferred_pass_rate: transferred } = judge;
  return element(
    "dl",
    { class: "judgerates" },
    fact("Pass rate by the judge", percent(rate)),
    corrected ? estimate(`Corrected by ${count(answers, "labelled answer")}`, corrected) : null,
    transferred ? estimate("Corrected by labels of other runs", transferred) : null,
  );
}

function fact(label, ...value) {
  return element("div", {}, element("dt", {}, label), element("dd", {}, value));
}

function estimate(label, found) {
  return fact(label, element("strong", {}, shareWords(found)), intervalDrawing(found.value, found.interval));
}

/** `74.2% (95% CI 67.9% to 80.1%)` */
export function shareWords({ value, interval }) {
  return `${percent(value)} (95% CI ${percent(interval[0])} to ${percent(interval[1])})`;
}

function numberWords({ value, interval }) {
  return `${fixed(value, 2)} (95% CI ${fixed(interval[0], 2)} to ${fixed(interval[1], 2)})`;
}

function confusion(matrix) {
  const row = (label, ...cells) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label),
      cells.map(([number, kind]) => element("td", { class: `number ${kind}` }, number.toLocaleString("en"))),
    );
  return element(
    "div",
    { class: "scrolls", tabindex: 0, role: "group", "aria-label": "Labelled answers" },
    element(
      "table",
      { class: "confusion" },
      element("caption", { class: "note" }, "Labelled answers"),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("td", {}),
          ["Person passes", "Person fails"].map((head) => element("th", { scope: "col" }, head)),
        ),
      ),
      element(
        "tbody",
        {},
        row("Judge passes", [matrix.true_passes, ""], [matrix.false_passes, "wrong"]),
        row("Judge fails", [matrix.false_failures, "wrong"], [matrix.true_failures, ""]),
      ),
    ),
  );
}

const MEASURES = [
  ["tpr", "TPR", "of what people pass, the judge passes", "no labelled answer passes"],
  ["tnr", "TNR", "of what people fail, the judge fails", "no labelled answer fails"],
  ["accuracy", "Accuracy", "of all answers, both say the same", ""],
];

/** The lines of a judge's accuracy: name, what is known, what it means. */
export function measuresOf(judge) {
  if (!judge.accuracy) return [];
  const lines = MEASURES.map(([name, label, meaning, missing]) =>
    judge[name] ? [label, shareWords(judge[name]), meaning] : [label, `cannot be estimated: ${missing}`, meaning],
  );
  const kappa = judge.kappa
    ? numberWords(judge.kappa)
    : "undefined: people or the judge say the same of all labelled answers";
  return [...lines, ["Cohen’s kappa", kappa, "agreement beyond chance"]];
}

function accuracyOf(judge) {
  const lines = measuresOf(judge);
  if (!lines.length) return null;
  return element(
    "dl",
    { class: "judgerates" },
    lines.map(([label, value, meaning]) => fact(label, value, element("span", { class: "note" }, ` ${meaning}`))),
  );
}
