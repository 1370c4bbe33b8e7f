// Two answers side by side.

import { alignedLines, markedWords } from "../data/differences.js";
import { count, score } from "../data/numbers.js";
import { STATUSES } from "../data/statuses.js";
import { MOST_ODD, oddPlaces, textOf } from "../data/texts.js";
import { button, element, hidden, section } from "../dom/elements.js";
import { badge, statusIcon } from "../dom/outcomes.js";
import { inline, longText, safely } from "../dom/text.js";

const SIDES = 200_000;
const UNCHANGED_AROUND = 3;

// The trial of the other run that this one is held against.
export function earlierTrial(one, trial) {
  return one.base.trials.find((other) => other.sample === trial.sample) ?? one.base.trials[0];
}

// The same case in the other run: the answers, then verdicts and what changed in the checks.
export function sinceThen(one, trial, told, before) {
  if (one.base === null)
    return one.change
      ? section("In the other run", element("p", { class: "panel note" }, "The other run does not have this case."))
      : null;
  const earlier = earlierTrial(one, trial);
  return section(
    "Compared with the other run",
    one.change === "edited"
      ? element(
          "p",
          { class: "warning" },
          "The case was edited between the two runs, so its verdicts say little about the target.",
        )
      : null,
    sideBySide(before.output, told.output, ["Answer before", "Answer now"]),
    element(
      "div",
      { class: "panel versus" },
      element(
        "p",
        { class: "moved" },
        badge(earlier.status),
        ` ${score(earlier.score)} → `,
        badge(trial.status),
        ` ${score(trial.score)}`,
      ),
      checkChanges(before.checks ?? [], told.checks ?? []),
    ),
  );
}

function checkChanges(before, now) {
  const states = new Map(before.map((check) => [textOf(check.name), check.state]));
  const moved = now.filter((check) => states.has(textOf(check.name)) && states.get(textOf(check.name)) !== check.state);
  if (!moved.length) return element("p", { class: "note" }, "No check changed.");
  return element(
    "ul",
    { class: "moves" },
    moved.map((check) =>
      element(
        "li",
        {},
        statusIcon(STATUSES[states.get(textOf(check.name))]),
        " → ",
        statusIcon(STATUSES[check.state]),
        " ",
        inline(check.name),
      ),
    ),
  );
}

export function sideBySide(one, other, titles) {
  const texts = [textOf(one), textOf(other)];
  if (texts[0] === texts[1])
    return element(
      "div",
      { class: "panel" },
      element("p", { class: "note" }, `${titles[0]} and ${titles[1].toLowerCase()} are the same.`),
    );
  const tooMuch = texts[0].length + texts[1].length > SIDES || texts.some((text) => oddPlaces(text).length > MOST_ODD);
  const rows = tooMuch ? null : alignedLines(...texts);
  const head = element(
    "div",
    { class: "sides head" },
    titles.map((title) => element("h3", {}, title)),
  );
  if (rows === null)
    return element(
      "div",
      { class: "panel difference" },
      head,
      element("p", { class: "note" }, "Too much differs to align the lines."),
      element(
        "div",
        { class: "sides" },
        [one, other].map((text) => element("div", { class: "half" }, longText(text))),
      ),
    );
  return element("div", { class: "panel difference" }, head, differenceRows(rows));
}

// Long stretches that are the same are left out, with a button that brings them back.
function differenceRows(rows) {
  const near = rows.map(() => false);
  rows.forEach((row, number) => {
    if (row.changed) near.fill(true, Math.max(0, number - UNCHANGED_AROUND), number + UNCHANGED_AROUND + 1);
  });
  const shown = [];
  for (let number = 0; number < rows.length; number += 1) {
    if (near[number]) shown.push(differenceRow(rows[number]));
    else {
      const from = number;
      while (number + 1 < rows.length && !near[number + 1]) number += 1;
      const skipped = rows.slice(from, number + 1);
      const more = button(
        `${count(skipped.length, "line")} the same`,
        () => more.replaceWith(...skipped.map(differenceRow)),
        { class: "more" },
      );
      shown.push(more);
    }
  }
  return element("div", { class: "lines" }, shown);
}

function differenceRow(row) {
  if (!row.changed)
    return element(
      "div",
      { class: "sides" },
      [row.left, row.right].map((line) => element("div", { class: "half", dir: "auto" }, safely(line))),
    );
  const marked =
    row.left !== null && row.right !== null
      ? markedWords(row.left, row.right)
      : [row.left === null ? null : [["removed", row.left]], row.right === null ? null : [["added", row.right]]];
  return element(
    "div",
    { class: "sides" },
    differenceSide(marked[0], "removed", "del"),
    differenceSide(marked[1], "added", "ins"),
  );
}

function differenceSide(runs, kind, tag) {
  if (runs === null) return element("div", { class: "half none" });
  return element(
    "div",
    { class: `half ${kind}`, dir: "auto" },
    hidden(`${kind}: `),
    runs.map(([of, text]) => (of === "same" ? safely(text) : element(tag, {}, safely(text)))),
  );
}
