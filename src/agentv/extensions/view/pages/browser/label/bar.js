// What a person says of an answer: buttons that have keys, a note, and what was saved.

import { button, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { LABEL_CHOICES } from "./keys.js";

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
    const { given } = answer;
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
    this.told = element("p", { class: "note said", role: "status" });
    this.problem = element("p", { class: "warning", role: "alert", hidden: true });
    this.buttons = LABEL_CHOICES.map((choice) => this.choice(choice));
    this.element = element(
      "div",
      { class: "labelbar panel", role: "group", "aria-label": "Your label" },
      element("p", { class: "question" }, "Does the answer meet the criteria?"),
      given ? element("p", { class: "note given" }, `Your label: ${given.verdict}. A new one replaces it.`) : null,
      this.noteLine,
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
    return keyed(choice.label, choice.key, (event) => this.choose(choice, event), {
      class: `choice ${choice.verdict}`,
      "aria-pressed": this.answer.given?.verdict === choice.verdict ? "true" : null,
    });
  }

  choose({ verdict }, event = null) {
    if (event?.detail > 1) return; // the second click of a double click is for no answer
    this.actions.say(verdict);
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
    this.told.replaceChildren("Saved ", inline(name), `: ${given.verdict}.`);
  }
}

function keyed(label, key, press, attributes = {}) {
  const made = button(label, press, { class: "quiet", "aria-keyshortcuts": key, ...attributes });
  if (label !== key) made.append(" ", element("kbd", { "aria-hidden": "true" }, key));
  return made;
}
