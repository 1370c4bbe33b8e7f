// The data of a page that lie in its file.

/** @import { Case, Choice, Results, Source } from "./types.d.ts" */

import { countsOf, countsOfCases, distinctCases } from "./cases.js";
import { matchRuns } from "./changes.js";
import { chosenCases, statusTest } from "./choice.js";
import { FileGrid } from "./file_grid.js";
import { againstOf, overviewOf } from "./file_overview.js";
import { elementsOf, Run } from "./file_run.js";
import { searchCases } from "./file_search.js";
import { rateOfCases } from "./rates.js";
import { giveRoutes, routeIn } from "./routes.js";

/** @implements {Source} */
export class FileSource {
  constructor() {
    const [run, base = null] = JSON.parse(elementsOf("runs", 0)[0].textContent).map(
      (facts, number) => new Run(number, facts),
    );
    const [compared] = elementsOf("comparison", 0);
    const gone = base ? matchRuns(run, base) : [];
    this.kind = "report";
    this.run = run;
    this.routes = giveRoutes(run.cases);
    run.compared = base !== null;
    if (base) giveRoutes(base.cases);
    const comparison = compared ? JSON.parse(compared.textContent) : null;
    this.told = overviewOf(run, base ? againstOf(run, base, comparison, gone) : null);
  }

  async overview() {
    return this.told;
  }

  /**
   * @param {Choice} choice
   * @param {() => void} changed
   * @returns {Results}
   */
  find(choice, changed) {
    const cases = chosenCases(this.run, { ...choice, status: "" });
    return new FileResults(cases, choice.q, statusTest(choice), changed);
  }

  /**
   * @param {Choice} choice
   * @param {() => void} changed
   */
  grid(choice, changed) {
    const order = choice.sort || "file";
    const found = (told) => /** @type {any} */ (this.find({ ...choice, status: "", order }, told));
    return new FileGrid(this.run, choice, found, changed);
  }

  async caseAt(route) {
    return routeIn(this.routes, route);
  }

  async casesOf(ids) {
    return this.run.cases.filter((one) => ids.includes(one.id));
  }

  async whole(trial) {
    return trial.run.whole(trial);
  }

  async others() {
    return [];
  }

  watch() {
    return () => {};
  }
}

/** @implements {Results} */
class FileResults {
  constructor(cases, query, takes, changed) {
    this.takes = takes;
    this.problem = null;
    this.searching = Boolean(query);
    this.set(query ? [] : cases);
    if (query)
      this.ended = searchCases(cases, query, (found, ended) => {
        this.searching = !ended;
        this.set(found);
        if (this.ended) changed(); // what is found at once is there when this returns
      });
  }

  /** @param {Case[]} any that end in any way */
  set(any) {
    const found = any.filter(this.takes);
    this.counts = countsOf(any);
    this.worst = countsOfCases(any);
    this.found = found;
    this.places = new Map(found.map((one, place) => [one.route, place]));
    this.total = found.length;
    this.cases = distinctCases(found);
    this.rate = rateOfCases(found);
  }

  at(place) {
    return this.found[place];
  }

  need() {}

  placeOf(route) {
    return this.places.get(route) ?? -1;
  }

  retry() {}

  stop() {
    this.ended?.();
  }
}
