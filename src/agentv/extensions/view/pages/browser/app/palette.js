// Go anywhere by typing a few letters of where: pages, runs, and what can be done here.

import { plainly } from "../data/texts.js";
import { button, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

const MOST_COMMANDS = 12;
const SEARCH_MS = 120;

/**
 * @typedef {object} Command
 * @property {string} label
 * @property {string} [more] what tells it from others
 * @property {string} [key] that does the same
 * @property {() => void} run
 */

/** Commands whose words begin with the letters that were typed, in their order. */
export function matching(commands, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter(({ label, more = "" }) => {
    const text = `${label} ${more}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export class Palette {
  /**
   * @param {() => Command[]} commands what can be done on this page
   * @param {(typed: string) => Promise<Command[]>} search what else the words find
   */
  constructor(commands, search) {
    this.commands = commands;
    this.find = search;
    this.shown = [];
    this.at = 0;
    this.round = 0;
    this.list = element("ul", { id: "commands", role: "listbox", "aria-label": "Commands", class: "commands" });
    this.input = element("input", {
      type: "text",
      class: "search",
      role: "combobox",
      placeholder: "Go to a page or a run, or do something",
      "aria-label": "Command",
      "aria-expanded": "true",
      "aria-controls": "commands",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.typed(),
      keydown: (event) => this.key(event),
    });
    this.dialog = element("dialog", { class: "palette", "aria-label": "Go to" }, this.input, this.list);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  button() {
    return button("Go to…", () => this.open(), { class: "quiet goto", title: "Ctrl-K" });
  }

  open() {
    if (this.dialog.open) return;
    this.input.value = "";
    this.dialog.showModal();
    this.typed();
  }

  typed() {
    const typed = this.input.value.trim();
    this.round += 1;
    const { round } = this;
    const here = matching(this.commands(), typed);
    this.show(here);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      try {
        const found = await this.find(typed);
        if (round === this.round) this.show([...here, ...found]);
      } catch {
        // what is here stays; the page of runs says what is wrong
      }
    }, SEARCH_MS);
  }

  /** @param {Command[]} commands */
  show(commands) {
    this.shown = commands.slice(0, MOST_COMMANDS);
    this.at = Math.max(0, Math.min(this.at, this.shown.length - 1));
    this.list.replaceChildren(
      ...(this.shown.length
        ? this.shown.map((one, place) => this.option(one, place))
        : [element("li", { role: "option", "aria-disabled": "true", class: "none" }, "Nothing is called so.")]),
    );
    this.highlight(this.at);
  }

  option({ label, more, key, run }, place) {
    return element(
      "li",
      {
        role: "option",
        id: `command-${place}`,
        title: plainly(label),
        click: () => this.run(run),
        pointermove: () => this.highlight(place),
      },
      element("span", { class: "name" }, inline(label)),
      more ? element("span", { class: "more" }, inline(more)) : null,
      key ? element("kbd", {}, key) : null,
    );
  }

  highlight(place) {
    this.at = place;
    for (const [number, one] of [...this.list.children].entries())
      one.setAttribute("aria-selected", String(number === place && this.shown.length > 0));
    if (this.shown.length) this.input.setAttribute("aria-activedescendant", `command-${place}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.list.children[place]?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && this.shown.length) this.highlight((this.at + by + this.shown.length) % this.shown.length);
    else if (event.key === "Enter" && this.shown[this.at]) this.run(this.shown[this.at].run);
    else return;
    event.preventDefault();
    event.stopPropagation(); // the page behind has meanings of its own for these keys
  }

  run(command) {
    this.dialog.close();
    command();
  }
}
