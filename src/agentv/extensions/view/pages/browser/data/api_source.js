// The data of a run that a server has.

/** @import { Api } from "./api.js" */
/** @import { Case, Choice, GridResults, News, Overview, Source, Tables } from "./types.d.ts" */

import { ApiResults, GRID_PAGE, PAGE } from "./api_results.js";
import { ofLists } from "./choice.js";
import { routeAsWritten } from "./routes.js";
import { GROUPS, groupsOfSummary, rateOfRun } from "./summary_rates.js";

const OTHERS = 41;
const OTHER_RUNS = 30;

/** @implements {Source} */
export class ApiSource {
  /**
   * @param {Api} api
   * @param {string} id of the run
   * @param {{ run: string, route: string } | null} beside a run and its case that a case is held against
   */
  constructor(api, id, beside = null) {
    this.kind = "run";
    this.api = api;
    this.id = id;
    this.beside = beside;
    /** @type {Tables | null} */
    this.tables = null;
    this.cursor = null;
    /** @type {Set<ApiResults>} */
    this.open = new Set();
  }

  /**
   * @param {AbortSignal} [signal]
   * @returns {Promise<Overview>}
   */
  async overview(signal) {
    const told = await this.api.get(["runs", this.id], {}, signal);
    this.tables = { ...told.tables, assertions: told.tables.assertions.map(({ type, name }) => [type, name]) };
    this.cursor = told.cursor ?? null;
    return this.overviewOf(told);
  }

  /** @returns {Overview} */
  overviewOf(told) {
    const { facts, counts, rates } = told;
    const { summary } = facts;
    return {
      facts: { ...facts, name: told.name },
      summary,
      tables: this.tables,
      state: told.state,
      problem: told.problem,
      indexed: told.indexed ?? 1,
      done: told.done,
      planned: told.planned,
      failures: this.failuresOf(told.failures),
      counts,
      rates: {
        run: rates.run ?? rateOfRun({ summary, matrix: facts.matrix }),
        by: Object.fromEntries(GROUPS.map((name) => [name, groupsOfSummary(summary, name)])),
        assertions: rates.assertions,
      },
      scores: told.scores,
      against: null,
    };
  }

  failuresOf({ groups, rerun }) {
    const example = (member) => ({
      route: member.route,
      id: member.test_id,
      suite: member.suite,
      target: member.target,
      prompt: member.prompt_id ?? null,
      variant: member.variant ?? null,
      tables: this.tables,
    });
    const distinct = (members) => {
      const known = members.filter(({ route }) => route !== null);
      return [...new Map(known.map((member) => [member.route, example(member)])).values()];
    };
    return { groups: groups.map((group) => ({ ...group, examples: distinct(group.members) })), rerun };
  }

  /**
   * @param {Choice} choice
   * @param {() => void} changed
   */
  find(choice, changed) {
    const { why, change: _, ...named } = ofLists(choice);
    const parameters = { ...named, cause: why, limit: PAGE };
    const results = new ApiResults(async (from, signal) => {
      const found = await this.api.get(["runs", this.id, "cases"], { ...parameters, from }, signal);
      return {
        cases: found.cases.map((one) => this.caseOf(one)),
        total: found.total,
        distinct: found.distinct ?? null,
        rate: found.rate ?? null,
        counts: found.counts,
        worst: found.worst,
        ready: (found.indexed ?? 1) >= 1,
      };
    }, changed);
    this.open = new Set([...this.open].filter((one) => !one.ended).concat(results));
    return results;
  }

  /**
   * @param {Choice} choice
   * @param {() => void} changed
   * @returns {GridResults}
   */
  grid(choice, changed) {
    const { why, change: _, order: __, ...named } = ofLists(choice);
    const { show, against } = choice;
    const where = choice.where.split("\n");
    const more = { cause: why, order: choice.sort || "file", show, against, where, limit: GRID_PAGE };
    const parameters = { ...named, ...more };
    const results = /** @type {any} */ (
      new ApiResults(
        async (from, signal) => {
          const found = await this.api.get(["runs", this.id, "grid"], { ...parameters, from }, signal);
          results.head = found;
          return { cases: found.rows, total: found.total, distinct: null, rate: null, ready: found.indexed >= 1 };
        },
        changed,
        GRID_PAGE,
      )
    );
    results.head = null;
    this.open = new Set([...this.open].filter((one) => !one.ended).concat(results));
    return results;
  }

  /** @param {string[]} suites */
  async others(suites) {
    const { runs } = await this.api.get(["runs"], { suite: suites.length === 1 ? suites[0] : "", limit: OTHER_RUNS });
    return runs.filter((one) => one.run_id !== this.id && one.total);
  }

  /** @returns {Case} */
  caseOf(told) {
    for (const trial of told.trials) trial.run_id = this.id;
    return { base: null, change: null, early: null, ...told, tables: this.tables };
  }

  async caseAt(route, signal) {
    const one = await this.maybe(["runs", this.id, "cases", routeAsWritten(route)], signal);
    if (!one || !this.beside) return one && this.caseOf(one);
    const other = await this.maybe(["runs", this.beside.run, "cases", this.beside.route], signal);
    for (const trial of other?.trials ?? []) trial.run_id = this.beside.run;
    return { ...this.caseOf(one), base: other };
  }

  async maybe(parts, signal) {
    try {
      return await this.api.get(parts, {}, signal);
    } catch (problem) {
      if (problem.status === 404) return null;
      throw problem;
    }
  }

  async casesOf(ids, signal) {
    const found = await this.api.get(["runs", this.id, "cases"], { id: ids, limit: OTHERS }, signal);
    return found.cases.filter((one) => ids.includes(one.id)).map((one) => this.caseOf(one));
  }

  async whole(trial, signal) {
    return this.api.get(["runs", trial.run_id, "trials", trial.trial], {}, signal);
  }

  /** @param {(news: News) => void} listener */
  watch(listener) {
    const address = this.api.address(["runs", this.id, "events"], { after: this.cursor });
    return this.api.listen(address, {
      rows: (news) => {
        const cases = news.cases.map((one) => this.caseOf(one));
        for (const results of this.open) for (const one of cases) results.replace(one);
        listener({ kind: "progress", ...news, cases });
      },
      state: (news) => listener({ kind: "state", ...news }),
      reset: () => listener({ kind: "reset" }),
    });
  }

  refresh() {
    for (const results of this.open) results.refresh();
  }
}
