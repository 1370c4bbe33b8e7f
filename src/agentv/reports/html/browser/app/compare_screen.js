// Runs against the first of them: the verdicts first, then the cases that moved, in both directions, with both answers.

/** @import { Api } from "../data/api.js" */
/** @import { Against, Case } from "../data/types.d.ts" */

import { sideBySide } from "../case/answers.js";
import { CHANGES, DIRECTIONS } from "../data/changes.js";
import { plainly, shortened } from "../data/texts.js";
import { button, element, folded, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { Loading } from "../page/loading.js";
import { since } from "../run/comparison.js";
import { runAddress } from "./run_rows.js";

const MOST_RUNS = 100;
const MOST_CANDIDATES = 8;

export class CompareScreen {
  /** @param {Api} api */
  constructor(api) {
    this.api = api;
    this.title = "Compare";
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.ids = null;
  }

  goTo(_, parameters) {
    const ids = parameters.getAll("run");
    if (JSON.stringify(ids) === JSON.stringify(this.ids)) return;
    this.ids = ids;
    this.loading.during(
      (signal) => this.page(ids, signal),
      () => this.main.querySelector("h1")?.focus(),
    );
  }

  async page(ids, signal) {
    const [base, ...candidates] = ids;
    const [{ runs }, ...told] = await Promise.all([
      this.api.get(["runs"], { limit: MOST_RUNS }, signal),
      ...(base ? candidates.filter(Boolean).map((one) => this.compared(base, one, signal)) : []),
    ]);
    const choice = this.chooser(ids, runs);
    if (!told.length) return element("article", {}, element("h1", { tabindex: -1 }, "Compare runs"), choice);
    const found = told.map((one) => since(new ComparedState(this.api, one)));
    if (found.length === 1) return element("article", { class: "overview" }, choice, found[0]);
    return element(
      "article",
      { class: "overview" },
      choice,
      found.map(([verdict]) => verdict),
      found.map(([, ...moved], place) =>
        section(["Moved in ", inline(told[place].candidate.run_id)], element("div", {}, moved)),
      ),
    );
  }

  compared(base, candidate, signal) {
    return this.api.get(["compare"], { run: [base, candidate] }, signal);
  }

  chooser(ids, runs) {
    const [base = "", ...others] = ids;
    const candidates = others.length ? others : [""];
    const select = (label, chosen, changed) => {
      const known =
        runs.some(({ run_id: id }) => id === chosen) || !chosen ? runs : [{ run_id: chosen, suites: [] }, ...runs];
      const made = element(
        "select",
        { change: () => changed(made.value) },
        element("option", { value: "" }, "Choose a run"),
        known.map((run) => element("option", { value: run.run_id }, optionWords(run))),
      );
      made.value = chosen;
      return element("label", {}, element("span", { class: "label" }, label), made);
    };
    const show = (...chosen) => {
      location.hash = `#/compare?${new URLSearchParams(chosen.map((id) => ["run", id]))}`;
    };
    const candidate = (one, place) =>
      select(candidates.length > 1 ? `Candidate ${place + 1}` : "Candidate", one, (id) =>
        show(base, ...candidates.with(place, id).filter((other, at) => other || at === 0)),
      );
    const full = candidates.every(Boolean) && candidates.length < MOST_CANDIDATES;
    return element(
      "div",
      { class: "panel chooser" },
      select("Base", base, (id) => show(id, ...candidates)),
      button("Swap", () => show(candidates[0], base, ...candidates.slice(1)), { class: "quiet" }),
      candidates.map(candidate),
      base && full ? button("Add a run", () => show(base, ...candidates, ""), { class: "quiet" }) : null,
    );
  }

  leavePage() {
    this.loading.stop();
  }

  keys() {
    return {
      Escape: () => {
        location.hash = "#/";
      },
    };
  }
}

function optionWords(run) {
  const words = [run.name || run.suites.join(", "), run.run_id].filter(Boolean).join(" · ");
  return shortened(plainly(words), 90);
}

// What the components of a comparison need to know of the page that they are on.
class ComparedState {
  constructor(api, told) {
    this.api = api;
    this.told = told;
    this.run = { against: comparedRuns(told) };
    this.runAddress = runAddress;
  }

  /** @param {Case} one */
  address(one) {
    const query = new URLSearchParams({ against: this.told.base.run_id, beside: one.base?.route ?? one.route });
    return `${runAddress(this.told.candidate.run_id)}case/${one.route}?${query}`;
  }

  chosen() {
    return null;
  }

  // Both answers, once somebody looks.
  beneath(one) {
    return folded(
      "Both answers",
      () => {
        const place = element("div", { class: "besides" });
        const loading = new Loading(place);
        loading.during(async (signal) => {
          const [before, now] = await Promise.all([
            this.whole(this.told.base.run_id, one.base, signal),
            this.whole(this.told.candidate.run_id, one, signal),
          ]);
          return sideBySide(before.output, now.output, ["Answer before", "Answer now"]);
        });
        return place;
      },
      { class: "both" },
    );
  }

  whole(run, one, signal) {
    return this.api.get(["runs", run, "trials", one.trials[0].trial], {}, signal);
  }
}

/** @returns {Against} */
function comparedRuns(told) {
  const side = ({ run_id: id, targets }) => ({ run_id: id, targets: targets ?? [] });
  const tables = { suites: [], targets: [], prompts: [], variants: [], tags: [], ...told.tables };
  const cases = told.moved.map((one) => ({ ...one.case, change: one.change, base: one.base, tables }));
  const { gone = 0, ...changes } = told.counts;
  return {
    base: side(told.base),
    candidate: side(told.candidate),
    comparison: told.comparison,
    changes: Object.keys(CHANGES)
      .filter((change) => changes[change])
      .map((change) => [change, changes[change]]),
    directions: DIRECTIONS.map(([change, title]) => {
      const wanted = change.split(" ");
      const total = wanted.reduce((sum_, name) => sum_ + (changes[name] ?? 0), 0);
      return { change, title, total, cases: cases.filter((one) => wanted.includes(one.change)) };
    }),
    gone: { total: gone, cases: told.gone ?? [] },
  };
}
