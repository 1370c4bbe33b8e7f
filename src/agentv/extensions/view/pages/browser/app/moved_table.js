// The cases that moved from a base in any of several runs: one table, a column for each run, with the answers of a case
// beneath it.

/** @import { Api } from "../data/api.js" */
/** @import { Case } from "../data/types.d.ts" */

import { sideBySide } from "../case/answers.js";
import { CHANGES, DIRECTIONS } from "../data/changes.js";
import { score } from "../data/numbers.js";
import { element, folded } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { WHERE, whereOf } from "../list/case_words.js";
import { Loading } from "../page/loading.js";
import { runAddress } from "./run_rows.js";

const MOVED_CHANGES = ["worse", "better", "lower", "higher"];
const CHANGE_WORDS = { ...CHANGES, gone: "not in this run", "left out": "not compared" };
const NAME_TABLES = { suites: "suite", targets: "target", prompts: "prompt", variants: "variant" };

/**
 * @typedef {{ change: string, case: Case | null }} CaseInRun
 * @typedef {{ direction: string, base: Case, runs: CaseInRun[] }} MovedRow
 */

export class MovedTable {
  /**
   * @param {Api} api
   * @param {string[]} ids the base, then the other runs
   * @param {{ moved: MovedRow[], [more: string]: any }} told
   */
  constructor(api, ids, told) {
    this.api = api;
    const [base, ...others] = ids;
    this.base = base;
    this.others = others;
    this.told = told;
    this.tables = namesApart(told.moved);
  }

  element() {
    const runs = this.others.length > 1 ? this.others.map((_, place) => `Candidate ${place + 1}`) : ["Candidate"];
    const named = (label, id) =>
      element("th", { scope: "col" }, label, element("a", { href: runAddress(id) }, inline(id)));
    return element(
      "div",
      { class: "panel scrolls movedcases", tabindex: 0, role: "group", "aria-label": "Cases that moved" },
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            element("th", { scope: "col" }, "Case"),
            named("Base", this.base),
            runs.map((label, place) => named(label, this.others[place])),
          ),
        ),
        DIRECTIONS.map(([changes, title]) => this.direction(changes.split(" ")[0], title)),
      ),
    );
  }

  direction(name, title) {
    const rows = this.told.moved.filter(({ direction }) => direction === name);
    const total = this.told[name];
    const across = (made) => element("tr", {}, element("td", { colspan: this.others.length + 2, class: "note" }, made));
    return element(
      "tbody",
      {},
      element(
        "tr",
        { class: "direction" },
        element(
          "th",
          { colspan: this.others.length + 2, scope: "rowgroup" },
          element("h2", {}, `${title}: ${total.toLocaleString("en")}`),
        ),
      ),
      total ? rows.map((row) => this.row(row)) : across("None."),
      total > rows.length ? across(`The first ${rows.length.toLocaleString("en")} are listed.`) : null,
    );
  }

  row({ base, runs }) {
    const first = runs.findIndex(({ change }) => MOVED_CHANGES.includes(change));
    const where = whereOf({ ...base, tables: this.tables }, WHERE);
    return [
      element(
        "tr",
        { class: "movedcase" },
        element(
          "th",
          { scope: "row" },
          element("a", { class: "rowlink", href: this.address(first, runs[first].case, base) }, inline(base.id)),
          where ? element("span", { class: "small" }, inline(where)) : null,
        ),
        element(
          "td",
          { class: "number" },
          element(
            "a",
            { href: `${runAddress(this.base)}case/${base.route}` },
            statusIcon(base.status),
            score(base.score),
          ),
        ),
        runs.map((one, place) => this.cell(one, place, base)),
      ),
      element("tr", { class: "answers" }, element("td", { colspan: this.others.length + 2 }, this.answers(base, runs))),
    ];
  }

  cell({ change, case: one }, place, base) {
    const mark = element("span", { class: `mark ${change.replace(" ", "-")}` }, CHANGE_WORDS[change]);
    return element(
      "td",
      { class: "number" },
      one
        ? element("a", { href: this.address(place, one, base) }, statusIcon(one.status), score(one.score))
        : element("span", { class: "note", "aria-hidden": "true" }, "–"),
      mark,
    );
  }

  address(place, one, base) {
    const beside = new URLSearchParams({ against: this.base, beside: base.route });
    return `${runAddress(this.others[place])}case/${(one ?? base).route}?${beside}`;
  }

  // The answer in the base, and that in each run in which the case moved, once somebody looks.
  answers(base, runs) {
    const moved = runs.flatMap(({ change, case: one }, place) =>
      MOVED_CHANGES.includes(change) && one ? [{ one, place }] : [],
    );
    const title = moved.length > 1 ? "Answers" : "Both answers";
    return folded(
      title,
      () => {
        const box = element("div", { class: "besides" });
        new Loading(box).during(async (signal) => {
          const [before, ...now] = await Promise.all([
            this.whole(this.base, base, signal),
            ...moved.map(({ one, place }) => this.whole(this.others[place], one, signal)),
          ]);
          return element(
            "div",
            { class: "stack" },
            now.map((told, number) => [
              this.others.length > 1 ? element("p", { class: "who" }, inline(this.others[moved[number].place])) : null,
              sideBySide(before.output, told.output, ["Answer before", "Answer now"]),
            ]),
          );
        });
        return box;
      },
      { class: "both" },
    );
  }

  whole(run, one, signal) {
    return this.api.get(["runs", run, "trials", one.trials[0].trial], {}, signal);
  }
}

// Names that tell the cases of the table apart.
function namesApart(moved) {
  const cases = moved.map(({ base }) => base);
  return Object.fromEntries(
    Object.entries(NAME_TABLES).map(([table, name]) => [table, [...new Set(cases.map((one) => one[name] ?? null))]]),
  );
}
