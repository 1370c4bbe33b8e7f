// Runs against the first of them: the verdicts first, then the cases that moved, in both directions, with the answers.

/** @import { Api } from "../data/api.js" */

import { CHANGES } from "../data/changes.js";
import { button, element } from "../dom/elements.js";
import { Loading } from "../page/loading.js";
import { openRow, stepRows } from "../page/rows.js";
import { goneOf, verdictPanel } from "../run/comparison.js";
import { MovedTable } from "./moved_table.js";
import { runAddress, runWords, wholeFirst } from "./run_rows.js";

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
    const compared = [base, ...candidates.filter(Boolean)];
    const [{ runs }, told] = await Promise.all([
      this.api.get(["runs"], { limit: MOST_RUNS }, signal),
      base && compared.length > 1 ? this.api.get(["compare", "moved"], { run: compared }, signal) : null,
    ]);
    const newest = ids.length ? [] : newestTwo(runs);
    if (newest.length) {
      history.replaceState(null, "", comparisonAddress(newest));
      this.ids = newest;
      return this.page(newest, signal);
    }
    const choice = this.chooser(ids, runs);
    if (!told) return element("article", {}, element("h1", { tabindex: -1 }, "Compare runs"), choice);
    return element(
      "article",
      { class: "overview" },
      choice,
      told.comparisons.map((one) => verdictPanel(PLACE, comparedRuns(one))),
      new MovedTable(this.api, compared, told).element(),
      told.comparisons.map(({ counts, gone }) => goneOf({ total: counts.gone, cases: gone })),
    );
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
        known.map((run) => element("option", { value: run.run_id }, runWords(run))),
      );
      made.value = chosen;
      return element("label", {}, element("span", { class: "label" }, label), made);
    };
    const show = (...chosen) => {
      location.hash = comparisonAddress(chosen);
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
      j: () => stepRows(this.main, 1),
      k: () => stepRows(this.main, -1),
      Enter: () => openRow(this.main),
      Escape: () => {
        location.hash = "#/";
      },
    };
  }
}

function comparisonAddress(ids) {
  return `#/compare?${new URLSearchParams(ids.map((id) => ["run", id]))}`;
}

// The newest whole run, and before it the run of the same suites that it is compared with.
function newestTwo(runs) {
  const [candidate, ...earlier] = wholeFirst(runs).filter(({ partial, state }) => !partial && state === "finished");
  const base = earlier.find(({ suites }) => String(suites) === String(candidate.suites));
  return candidate && base ? [base.run_id, candidate.run_id] : [];
}

// What the verdict of a comparison needs to know of the page that it is on.
const PLACE = { runAddress, chosen: () => null };

function comparedRuns({ base, candidate, comparison, counts }) {
  const side = ({ run_id: id, targets }) => ({ run_id: id, targets: targets ?? [] });
  return {
    base: side(base),
    candidate: side(candidate),
    comparison,
    changes: Object.keys(CHANGES)
      .filter((change) => counts[change])
      .map((change) => [change, counts[change]]),
  };
}
