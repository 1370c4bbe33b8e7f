// What stands in the cells of a grid.

/** @import { GridCell, GridText } from "../data/types.d.ts" */

import { markedWords } from "../data/differences.js";
import { duration, money, score } from "../data/numbers.js";
import { STATUS_WORDS } from "../data/statuses.js";
import { element } from "../dom/elements.js";
import { asMarkdown } from "../dom/markdown.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline, safely } from "../dom/text.js";

const BEFORE_DIFFERENCE = 25; // characters
const LONGEST_LINE = 150; // characters, where a column is as wide as the screen

/**
 * A text that is cut where its row ends.
 *
 * @param {GridText | null} told
 * @param {number} lines of the row
 */
export function gridText(told, lines) {
  if (told === null) return element("p", { class: "gtext none" }, "no answer");
  const text = told.text.slice(0, lines * LONGEST_LINE);
  return element("p", { class: "gtext", dir: "auto" }, safely(text), told.length > text.length ? "…" : null);
}

/**
 * An answer with how it did.
 *
 * @param {GridCell} cell
 * @param {{ markdown: boolean, lines: number }} how
 */
export function answerCell(cell, { markdown, lines }) {
  const compact = lines === 1;
  const text = comparedText(cell, markdown && !compact, lines);
  if (compact) return [statusIcon(cell.status), element("span", { class: "gscore" }, scoreWords(cell)), text];
  return [
    element(
      "div",
      { class: "ghead" },
      statusIcon(cell.status),
      element("span", { class: "gscore" }, scoreWords(cell)),
      cell.base && cell.base.status !== cell.status
        ? element("span", { class: `mark ${cell.status === "passed" ? "better" : "worse"}` }, sinceWords(cell))
        : null,
      element("span", { class: "gfacts" }, factWords(cell)),
    ),
    cell.why ? element("p", { class: `gwhy ${cell.status}` }, inline(cell.why)) : null,
    text,
  ];
}

export function scoreWords({ status, score: value, samples, passed }) {
  if (samples > 1) return `${passed}/${samples}`;
  return status === "errored" || status === "skipped" ? STATUS_WORDS[status] : score(value);
}

function sinceWords({ base }) {
  return `was ${STATUS_WORDS[base.status]}`;
}

function factWords({ cost, duration: took }) {
  return [cost === null ? null : money(cost), duration(took)].filter(Boolean).join(" · ");
}

// Beside another run, the words that differ are marked: those that went, then those that came.
function comparedText({ answer, base }, markdown, lines) {
  if (answer && base?.answer && base.answer.text !== answer.text) {
    const [before, now] = markedWords(base.answer.text, answer.text).map(fromFirstDifference);
    return element(
      "div",
      { class: "gboth", dir: "auto" },
      element("p", { class: "gtext before", title: "the other run" }, marked(before, "del")),
      element("p", { class: "gtext" }, marked(now, "ins")),
    );
  }
  if (!markdown || answer === null) return gridText(answer, lines);
  return element("div", { class: "gtext rich", dir: "auto" }, asMarkdown(answer.text));
}

// What comes long before the first difference is left out.
function fromFirstDifference(parts) {
  const [[kind, text], ...others] = parts;
  if (kind !== "same" || !others.length || text.length <= 2 * BEFORE_DIFFERENCE) return parts;
  const begin = text.indexOf(" ", text.length - BEFORE_DIFFERENCE);
  return [[kind, `…${begin < 0 ? text.slice(-BEFORE_DIFFERENCE) : text.slice(begin)}`], ...others];
}

function marked(parts, tag) {
  return parts.map(([kind, text]) => (kind === "same" ? safely(text) : element(tag, {}, safely(text))));
}
