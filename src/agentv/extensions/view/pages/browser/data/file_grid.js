// The rows of a grid whose data lie in the file of the page. Texts of a cell are read when it is looked at.

/** @import { Case, Choice, GridCell, GridColumn, GridHead, GridRow, Results } from "./types.d.ts" */

import { askedIn, caseKey, countsOf, isFlaky, sum, together, variablesOf } from "./cases.js";
import { byPlaces } from "./choice.js";
import { lengthOf, textOf } from "./texts.js";

const TEXT = 2000;

export class FileGrid {
  /**
   * @param {any} run
   * @param {Choice} choice
   * @param {(changed: () => void) => Results & { found: Case[] }} find the cells of the choice, whatever their status
   * @param {() => void} changed
   */
  constructor(run, choice, find, changed) {
    this.run = run;
    this.choice = choice;
    this.columns = columnsOf(run);
    /** @type {(GridRow | undefined)[]} */
    this.made = [];
    this.problem = null;
    this.results = find(() => {
      this.take();
      changed();
    });
    this.take();
  }

  take() {
    /** @type {Map<string, Case[]>} */
    /** @type {Map<string, Case[]>} */
    const rows = Map.groupBy(this.results.found, (one) => caseKey(one));
    const found = [...rows.values()]
      .filter(([first]) => this.matches(first))
      .map((cells) => ({
        cells,
        ...together(cells.map(({ status }) => status)),
        flaky: cells.some(isFlaky),
        changed: cells.some(hasChanged),
      }));
    const statuses = this.choice.status.split(" ").filter(Boolean);
    const { show } = this.choice;
    /** @type {Case[][]} */
    this.rows = found
      .filter(
        ({ status, flaky }) => !statuses.length || statuses.includes(status) || (flaky && statuses.includes("flaky")),
      )
      .filter((row) => !(show in row) || row[show])
      .map(({ cells }) => cells);
    this.made = [];
    this.total = this.rows.length;
    this.searching = this.results.searching;
    /** @type {GridHead} */
    this.head = {
      columns: this.columns,
      counts: countsOf(found),
      different: found.filter(({ different }) => different).length,
      flaky: found.filter(({ flaky }) => flaky).length,
      changed: this.run.compared ? found.filter(({ changed }) => changed).length : null,
    };
  }

  matches(one) {
    const wanted = this.choice.where.split("\n").filter(Boolean);
    if (!wanted.length) return true;
    const facts = variablesOf(this.run.whole(one.trials[0]));
    return wanted.every((line) => {
      const [name, text] = [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)];
      return Object.hasOwn(facts, name) && facts[name].toLowerCase().includes(text.toLowerCase());
    });
  }

  at(place) {
    if (place < this.total) this.made[place] ??= this.row(this.rows[place]);
    return this.made[place];
  }

  need() {}

  retry() {}

  stop() {
    this.results.stop();
  }

  /** @returns {GridRow} */
  row(cells) {
    const [first] = cells;
    const told = this.run.whole(first.trials[0]);
    return {
      route: first.route,
      id: first.id,
      suite: first.suite,
      path: first.path,
      tags: first.tags,
      description: told.description ?? "",
      vars: Object.fromEntries(Object.entries(variablesOf(told)).map(([name, text]) => [name, beginningOf(text)])),
      input: beginningOf(askedIn(told)),
      cells: cells.map((one) => this.cell(one)).sort((one, other) => one.column - other.column),
    };
  }

  /** @returns {GridCell} */
  cell(one, beside = true) {
    const { trials, status } = one;
    const trial = trials.find((told) => told.status === status) ?? trials[0];
    const { output } = trial.run.whole(trial);
    return {
      column: this.columns.findIndex((column) => sameColumn(column, one)),
      route: one.route,
      trial,
      status,
      score: one.score,
      samples: trials.length,
      passed: trials.filter((told) => told.status === "passed").length,
      answer: output === undefined ? null : beginningOf(output),
      why: status === "passed" || status === "shown" ? "" : trial.teaser,
      cost: sum(trials.map(({ cost }) => cost)),
      duration: trials.reduce((total, { duration }) => total + duration, 0) / trials.length,
      base: beside && one.base ? this.cell(one.base, false) : null,
    };
  }
}

/** @returns {GridColumn[]} */
function columnsOf({ cases }) {
  const found = new Map(cases.map((one) => [JSON.stringify([one.target, one.prompt, one.variant]), one]));
  return [...found.values()]
    .sort((one, other) => byPlaces(one.order.slice(2), other.order.slice(2)))
    .map(({ target, prompt, variant }) => ({ target, prompt, variant }));
}

function sameColumn(column, one) {
  return column.target === one.target && column.prompt === one.prompt && column.variant === one.variant;
}

function hasChanged(one) {
  return one.base !== null && one.base.status !== one.status;
}

function beginningOf(told) {
  return { text: textOf(told).slice(0, TEXT), length: lengthOf(told) };
}
