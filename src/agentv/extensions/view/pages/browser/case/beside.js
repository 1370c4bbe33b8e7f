// The same case with another target, prompt or variant: a link to each, and the answers side by side.

/** @import { Case } from "../data/types.d.ts" */

import { score } from "../data/numbers.js";
import { textOf } from "../data/texts.js";
import { button, element, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { sideBySide } from "./answers.js";

const MOST = 40;
const BEGINNING = 400;

/**
 * @param {any} state the page as a whole
 * @param {Case} one
 * @param {any} told the trial that is shown
 * @param {Case[]} found cases of this id
 */
export function besideOthers(state, one, told, found) {
  const others = found.filter((other) => other.suite === one.suite && other.route !== one.route);
  if (!others.length) return null;
  const shown = element("div", { class: "besides" });
  const names = differing(one, others);
  const rows = others.slice(0, MOST).map((other) => rowOf(state, names, told, other, shown));
  return section(
    names.length > 1 ? "The same case elsewhere" : `With other ${names[0] ?? "row"}s`,
    element("ul", { class: "panel looks others" }, rows),
    shown,
  );
}

function rowOf(state, names, told, other, shown) {
  const name = names.map((what) => other[what] ?? `no ${what}`).join(" · ");
  const answer = element("p", { class: "why beginning", dir: "auto" }, inline(other.teaser));
  state.source.whole(other.trials[0]).then(
    (theirs) => answer.replaceChildren(inline(textOf(theirs.output).slice(0, BEGINNING) || other.teaser)),
    () => {}, // it says so itself where it is opened
  );
  const beside = button(
    "Compare answers",
    async () => {
      for (const pressed of shown.parentElement.querySelectorAll("[aria-pressed=true]"))
        pressed.setAttribute("aria-pressed", "false");
      beside.setAttribute("aria-pressed", "true");
      try {
        const theirs = await state.source.whole(other.trials[0]);
        shown.replaceChildren(sideBySide(theirs.output, told.output, [name, "This answer"]));
      } catch (problem) {
        shown.replaceChildren(element("p", { class: "warning", role: "alert" }, problem.message));
      }
    },
    { class: "quiet", "aria-pressed": "false", "aria-label": `Compare answers with ${name}` },
  );
  return element(
    "li",
    { class: "other" },
    element(
      "a",
      { class: "look", href: state.address(other) },
      statusIcon(other.status),
      element("span", { class: "id" }, inline(name)),
      element("span", { class: "score" }, other.status === "errored" ? "" : score(other.score)),
      answer,
    ),
    beside,
  );
}

// In what the rows differ from this one.
function differing(one, others) {
  return ["prompt", "target", "variant"].filter((what) => others.some((other) => other[what] !== one[what]));
}
