// What a person says of an answer: buttons that have keys, a note, and what was saved.

import { button, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { choicesOf, givenWords, pointsIn } from "./keys.js";

const LONGEST_NOTE = 10_000;

export class LabelBar {
  /**
   * @param {any} queue
   * @param {{ say: (said: any) => void, back: () => void, on: () => void, typed: (note: string) => void }} actions
   * @param {string} note
   */
  constructor({ answer, before, after }, actions, note) {
    this.answer = answer;
    this.actions = actions;
    const { scale, given } = answer;
    this.note = element("input", {
      type: "text",
      class: "search",
      "aria-label": "Note",
      placeholder: "Note, saved with the label",
      maxlength: LONGEST_NOTE,
      autocomplete: "off",
      input: () => actions.typed(this.note.value),
    });
    this.note.value = note;
    this.noteLine = element("p", { class: "noteline", hidden: !note }, this.note);
    this.points = scale && choicesOf(scale).some(({ said }) => said === null) ? this.pointsField(scale) : null;
    this.told = element("p", { class: "note said", role: "status" });
    this.problem = element("p", { class: "warning", role: "alert", hidden: true });
    this.buttons = choicesOf(scale).map((choice) => this.choice(choice));
    this.element = element(
      "div",
      { class: "labelbar panel", role: "group", "aria-label": "Your label" },
      element(
        "p",
        { class: "question" },
        scale
          ? `How well does it meet the criteria? ${scale.low} to ${scale.high} points`
          : "Does the answer meet the criteria?",
      ),
      given ? element("p", { class: "note given" }, `Your label: ${givenWords(given)}. A new one replaces it.`) : null,
      this.noteLine,
      this.points,
      element(
        "div",
        { class: "choices" },
        this.buttons,
        element(
          "span",
          { class: "moves" },
          keyed("Note", "n", () => this.startNote()),
          before ? keyed("Back", "b", actions.back) : null,
          given && after ? keyed("Next", "j", actions.on) : null,
        ),
      ),
      this.problem,
      this.told,
    );
  }

  choice(choice) {
    const { verdict } = choice.said ?? {};
    return keyed(choice.label, choice.key, (event) => this.choose(choice, event), {
      class: `choice ${verdict ?? ""}`,
      "aria-pressed": this.isGiven(choice) ? "true" : null,
    });
  }

  isGiven({ said }) {
    const { given } = this.answer;
    if (!given || !said) return false;
    return said.points === undefined
      ? given.points === null && said.verdict === given.verdict
      : said.points === given.points;
  }

  choose({ said }, event = null) {
    if (event?.detail > 1) return; // the second click of a double click is for no answer
    if (said) this.actions.say(said);
    else this.startPoints();
  }

  pointsField(scale) {
    const input = element("input", {
      type: "text",
      inputmode: "numeric",
      class: "search",
      "aria-label": `Points, ${scale.low} to ${scale.high}`,
      autocomplete: "off",
    });
    const line = element("p", { class: "noteline", hidden: true }, input);
    this.pointsInput = input;
    return line;
  }

  startPoints() {
    this.points.hidden = false;
    this.pointsInput.focus();
  }

  /** What Enter means in a field. */
  enter() {
    const { scale } = this.answer;
    if (document.activeElement !== this.pointsInput || !scale) return false;
    const points = pointsIn(this.pointsInput.value, scale);
    if (points === null) this.fail(`Points are whole numbers from ${scale.low} to ${scale.high}.`);
    else this.actions.say({ points });
    return true;
  }

  startNote() {
    this.noteLine.hidden = false;
    this.note.focus();
  }

  /** @param {boolean} busy */
  wait(busy) {
    for (const one of this.buttons) one.disabled = busy;
    this.problem.hidden = true;
  }

  fail(words, again = null) {
    this.problem.replaceChildren(words, ...(again ? [" ", button("Try again", again, { class: "quiet" })] : []));
    this.problem.hidden = false;
  }

  /** @param {string} name of a case @param {any} given */
  tell(name, given) {
    this.told.replaceChildren("Saved ", inline(name), `: ${givenWords(given)}.`);
  }
}

function keyed(label, key, press, attributes = {}) {
  const made = button(label, press, { class: "quiet", "aria-keyshortcuts": key, ...attributes });
  if (label !== key) made.append(" ", element("kbd", { "aria-hidden": "true" }, key));
  return made;
}
