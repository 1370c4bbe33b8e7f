// The list of cases: only the rows that can be seen are there, so that ten thousand cost what twenty do.

import { passedSamples } from "../data/cases.js";
import { score } from "../data/numbers.js";
import { button, element, hidden } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { marks, underneath, WHERE } from "./case_words.js";

const ROW_HEIGHT = 58;
const BEYOND = 8;

/** @import { Results } from "../data/types.d.ts" */

export class CaseList {
  constructor(address) {
    this.address = address;
    /** @type {Results | null} */
    this.results = null;
    this.selected = -1;
    this.drawn = new Map();
    this.rows = element("div", { class: "rows", role: "list", "aria-label": "Cases" });
    this.element = element(
      "div",
      { class: "list", tabindex: 0, role: "group", "aria-label": "List of cases", scroll: () => this.later() },
      this.rows,
    );
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  /** @param {Results} results */
  show(results, selected) {
    this.results = results;
    this.selected = selected;
    this.drawn.clear();
    this.rows.replaceChildren();
    this.refresh();
  }

  // Rows arrived, moved or went.
  refresh() {
    const { total, problem, searching } = this.results;
    this.rows.style.height = `${Math.max(total, 1) * ROW_HEIGHT}px`;
    for (const [number, row] of this.drawn)
      if (number >= total || row.of !== this.results.at(number)) {
        row.made.remove();
        this.drawn.delete(number);
      }
    this.told?.remove();
    this.told = problem
      ? this.failed(problem)
      : total || searching
        ? null
        : element("p", { class: "empty" }, "No cases match.");
    if (this.told) this.rows.append(this.told);
    this.draw();
  }

  failed(problem) {
    return element(
      "div",
      { class: "empty", role: "alert" },
      element("p", {}, problem.message),
      button("Try again", () => this.results.retry(), { class: "quiet" }),
    );
  }

  select(number) {
    this.selected = number;
    const top = number * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (number >= 0 && (top < scrollTop || top + ROW_HEIGHT > scrollTop + clientHeight))
      this.element.scrollTop = top - clientHeight / 2 + ROW_HEIGHT / 2;
    this.draw();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // Rows that stay are left alone, and those around the one with the focus are there before the list has scrolled:
  // whoever goes through them with the Tab key keeps the place.
  draw(focused = null) {
    if (!this.results) return;
    const seen = [
      this.element.scrollTop / ROW_HEIGHT,
      (this.element.scrollTop + this.element.clientHeight) / ROW_HEIGHT,
    ];
    const first = Math.max(0, Math.floor(Math.min(seen[0], focused ?? seen[0])) - BEYOND);
    const last = Math.min(this.results.total, Math.ceil(Math.max(seen[1], focused ?? seen[1])) + BEYOND);
    this.results.need(first, Math.max(last, BEYOND));
    for (const [number, row] of this.drawn)
      if (number < first || number >= last) {
        row.made.remove();
        this.drawn.delete(number);
      }
    let next = this.rows.firstChild;
    for (let number = first; number < last; number += 1) {
      const known = this.drawn.get(number);
      const of = this.results.at(number);
      const row = known ?? { of, made: of ? this.row(of, number) : this.waitingRow(number) };
      if (known) next = row.made.nextSibling;
      else this.rows.insertBefore(row.made, next);
      this.drawn.set(number, row);
      this.highlight(row.made.firstElementChild, number === this.selected);
    }
  }

  highlight(link, chosen) {
    link.classList.toggle("chosen", chosen);
    if (chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }

  row(one, number) {
    const link = element(
      "a",
      { class: "row", href: this.address(one) },
      statusIcon(one.status),
      element("span", { class: "id" }, inline(one.id)),
      element(
        "span",
        { class: "score" },
        one.trials.length > 1 ? `${passedSamples(one)}/${one.trials.length}` : score(one.score),
      ),
      element("span", { class: "under" }, marks(one), inline(underneath(one, WHERE))),
    );
    return this.placed(number, link);
  }

  // A row that has not arrived.
  waitingRow(number) {
    return this.placed(number, element("div", { class: "row waiting" }, hidden("loading")));
  }

  placed(number, content) {
    const row = element(
      "div",
      {
        focusin: () => this.draw(number),
        role: "listitem",
        "aria-setsize": this.results.total,
        "aria-posinset": number + 1,
      },
      content,
    );
    row.style.transform = `translateY(${number * ROW_HEIGHT}px)`;
    return row;
  }
}
