// The answer with what the checks found marked in it. It takes the place of the answer as it is otherwise shown.

import { hitsOf, stretches } from "../data/evidence.js";
import { laidOutJson } from "../data/laid_out_json.js";
import { characters, MOST_ODD, oddPlaces, textOf } from "../data/texts.js";
import { followView } from "../dom/answer_view.js";
import { button, element } from "../dom/elements.js";
import { safely } from "../dom/text.js";

const MARKED_AROUND = 20_000; // characters before the first mark and after the last that are shown

export class Evidence {
  constructor(told) {
    this.text = textOf(told.output);
    this.hits = hitsOf(told.checks);
    this.layOut();
    this.box = element("div", { class: "marked" });
  }

  /** @param {Node} usual the answer without marks */
  place(usual) {
    this.usual = usual;
    this.box.replaceChildren(usual);
    followView(this.box); // what was chosen while marks were shown
    return this.box;
  }

  // An answer that is JSON is marked as it is shown: with line breaks.
  layOut() {
    const laid = this.hits.length ? laidOutJson(this.text) : null;
    if (laid === null) return;
    this.text = laid.text;
    this.hits = this.hits.map((hit) => ({
      ...hit,
      begin: laid.placeOf(hit.begin),
      end: laid.placeOf(hit.end - 1) + 1,
    }));
    this.kind = "evidencetext code";
  }

  /** Whether the places of a grade are known. */
  knows(grade) {
    return this.hits.some((hit) => hit.grade === grade);
  }

  /** What shows the evidence of a grade; null: its places are not known. */
  button(grade) {
    return this.knows(grade) ? button("Show in the answer", () => this.show(grade), { class: "quiet" }) : null;
  }

  show(grade) {
    const pre = element("pre", { dir: "auto", class: this.kind ?? "evidencetext" });
    const [from, to] = this.reach(grade);
    if (from > 0) pre.append(element("span", { class: "note" }, `[${characters(from)} before] `));
    for (const { begin, end, hits } of stretches(this.hits, this.text.length))
      if (end > from && begin < to) pre.append(...this.piece(Math.max(begin, from), Math.min(end, to), hits, grade));
    const left = this.text.length - to;
    if (left > 0) pre.append(element("span", { class: "note" }, ` [${characters(left)} after]`));
    const back = button("Show without marks", () => this.place(this.usual), { class: "quiet" });
    this.box.replaceChildren(element("p", { class: "note" }, "What the checks found is marked.", back), pre);
    const first = this.box.querySelector("mark.chosen");
    first?.scrollIntoView({ block: "center" });
    /** @type {HTMLElement} */ (first)?.focus({ preventScroll: true });
  }

  // The part of the answer that is shown: all of a short one. No pair of surrogates is torn.
  reach(grade) {
    const own = this.hits.filter((hit) => hit.grade === grade);
    const whole = (place) => place - Number(/[\udc00-\udfff]/.test(this.text[place] ?? ""));
    const from = Math.max(0, Math.min(...own.map(({ begin }) => begin)) - MARKED_AROUND);
    const to = Math.min(this.text.length, from + 3 * MARKED_AROUND);
    const odd = oddPlaces(this.text.slice(from, to));
    return [whole(from), whole(odd.length > MOST_ODD ? from + odd[MOST_ODD] : to)];
  }

  piece(begin, end, hits, grade) {
    const text = safely(this.text.slice(begin, end));
    if (!hits.length) return [text];
    const chosen = hits.some((hit) => hit.grade === grade);
    const unwanted = (chosen ? hits.filter((hit) => hit.grade === grade) : hits).some(({ passed }) => !passed);
    const kind = `found${unwanted ? " unwanted" : ""}${chosen ? " chosen" : ""}`;
    return [element("mark", { class: kind, tabindex: chosen ? -1 : null }, text)];
  }
}
