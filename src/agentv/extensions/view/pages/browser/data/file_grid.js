// The rows of a grid whose data lie in the file of the page. Texts of a cell are read when it is looked at.

/** @import { Case, Choice, GridCell, GridColumn, GridHead, GridRow, Results } from "./types.d.ts" */

import { caseKey, countsOf, sum, WORST } from "./cases.js";
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
    const rows = Map.groupBy(this.results.found, (one) => caseKey(one));
    const told = [...rows.values()]
      .filter((cells) => this.matches(cells[0]))
      .map((cells) => ({ cells, status: worstOf(cells) }));
    const statuses = this.choice.status.split(" ").filter(Boolean);
    const { show } = this.choice;
    /** @type {Case[][]} */
    this.rows = told
      .filter(({ status }) => !statuses.length || statuses.includes(status))
      .filter(({ cells }) => show !== "different" || disagree(cells))
      .filter(({ cells }) => show !== "changed" || cells.some(hasChanged))
      .map(({ cells }) => cells);
    this.made = [];
    this.total = this.rows.length;
    this.searching = this.results.searching;
    /** @type {GridHead} */
    this.head = {
      columns: this.columns,
      counts: countsOf(told),
      different: told.filter(({ cells }) => disagree(cells)).length,
      changed: this.run.compared ? told.filter(({ cells }) => cells.some(hasChanged)).length : null,
    };
  }

  matches(one) {
    const wanted = this.choice.where.split("\n").filter(Boolean);
    if (!wanted.length) return true;
    const facts = factsOf(this.run.whole(one.trials[0]));
    return wanted.every((line) => {
      const [name, text] = [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)];
      return Object.hasOwn(facts, name) && asText(facts[name]).toLowerCase().includes(text.toLowerCase());
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
    const { input, description } = told;
    const asked = (input ?? []).filter(({ role }) => role === "user").at(-1) ?? input?.at(-1);
    return {
      route: first.route,
      id: first.id,
      suite: first.suite,
      tags: first.tags,
      description: description ?? "",
      vars: Object.fromEntries(
        Object.entries(factsOf(told)).map(([name, value]) => [name, beginningOf(asText(value))]),
      ),
      input: beginningOf(asked?.text ?? ""),
      cells: cells.map((one) => this.cell(one)).sort((one, other) => one.column - other.column),
    };
  }

  /** @returns {GridCell} */
  cell(one, beside = true) {
    const { trials, status } = one;
    const trial = trials.find((told) => told.status === status) ?? trials[0];
    const { output, key } = trial.run.whole(trial);
    return {
      column: this.columns.findIndex((column) => sameColumn(column, one)),
      route: one.route,
      trial,
      key: key ?? null,
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
function columnsOf(run) {
  const { prompts, targets, variants } = run.facts.matrix ?? run.tables;
  const place = (names, name) => names.indexOf(name);
  const found = new Map(
    run.cases.map(({ target, prompt, variant }) => [
      JSON.stringify([target, prompt, variant]),
      { target, prompt, variant },
    ]),
  );
  return [...found.values()].sort(
    (one, other) =>
      place(prompts, one.prompt) - place(prompts, other.prompt) ||
      place(targets, one.target) - place(targets, other.target) ||
      place(variants, one.variant) - place(variants, other.variant),
  );
}

function sameColumn(column, one) {
  return column.target === one.target && column.prompt === one.prompt && column.variant === one.variant;
}

function worstOf(cells) {
  return WORST.find((status) => cells.some((one) => one.status === status));
}

const JUDGED = new Set(["passed", "failed", "errored"]);

function disagree(cells) {
  return new Set(cells.map(({ status }) => status).filter((status) => JUDGED.has(status))).size > 1;
}

function hasChanged(one) {
  return one.base !== null && one.base.status !== one.status;
}

function beginningOf(told) {
  return { text: textOf(told).slice(0, TEXT), length: lengthOf(told) };
}

// The variables of a case, then its metadata.
function factsOf({ vars, metadata }) {
  const more = Object.entries(metadata ?? {}).map(([name, value]) => [`metadata.${name}`, value]);
  return { ...vars, ...Object.fromEntries(more) };
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
