// The rows that a choice finds on the server: pages of them are read where they are looked at.

/** @import { Case, Results } from "./types.d.ts" */

export const PAGE = 100;
export const GRID_PAGE = 40; // each of its rows has the texts of many cells
const KEPT_PAGES = 30;
const AGAIN_MS = 400; // while the server still reads the run

/**
 * @typedef {object} Found rows from a place on
 * @property {Case[]} cases
 * @property {number} total
 * @property {number | null} distinct
 * @property {any} rate
 * @property {import("./types.d.ts").Counts} [counts]
 * @property {import("./types.d.ts").Counts} [worst]
 * @property {boolean} ready
 */

/** @implements {Results} */
export class ApiResults {
  /**
   * @param {(from: number, signal: AbortSignal) => Promise<Found>} read
   * @param {() => void} changed
   * @param {number} size rows of a page
   */
  constructor(read, changed, size = PAGE) {
    this.read = read;
    this.changed = changed;
    this.size = size;
    this.total = 0;
    this.cases = null;
    this.rate = null;
    this.counts = null;
    this.worst = null;
    this.searching = true;
    this.problem = null;
    /** @type {Map<number, Case[]>} */
    this.pages = new Map();
    this.places = new Map();
    this.wanted = [0, size];
    this.under = new Map();
    this.round = 0;
    this.ended = false;
    this.fetch(0);
  }

  at(place) {
    return this.pages.get(Math.floor(place / this.size))?.[place % this.size];
  }

  need(first, last) {
    this.wanted = [first, last];
    if (this.problem) return;
    for (let page = Math.floor(first / this.size); page <= Math.floor(Math.max(first, last - 1) / this.size); page += 1)
      if (!this.pages.has(page) && (page === 0 || page * this.size < this.total)) this.fetch(page);
  }

  placeOf(route) {
    return this.places.get(route) ?? -1;
  }

  /** Read again what is looked at; rows that are there stay until then. */
  refresh() {
    if (this.ended) return;
    this.round += 1;
    for (const [page, under] of this.under) {
      under.abort();
      this.under.delete(page);
    }
    const [first, last] = this.wanted.map((place) => Math.floor(place / this.size));
    for (const page of [...this.pages.keys()]) if (page < first || page > last) this.forget(page);
    for (let page = first; page <= last; page += 1)
      if (page === first || page * this.size < this.total) this.fetch(page);
  }

  retry() {
    this.problem = null;
    this.searching = true;
    this.refresh();
    this.changed();
  }

  stop() {
    this.ended = true;
    clearTimeout(this.later);
    for (const under of this.under.values()) under.abort();
  }

  /** A row that is shown changed. */
  replace(one) {
    const place = this.placeOf(one.route);
    if (place < 0) return;
    this.pages.get(Math.floor(place / this.size))[place % this.size] = one;
  }

  async fetch(page) {
    if (this.under.has(page) || this.ended) return;
    const under = new AbortController();
    this.under.set(page, under);
    const { round } = this;
    try {
      const found = await this.read(page * this.size, under.signal);
      if (!this.ended && round === this.round) this.take(page, found);
    } catch (problem) {
      if (this.ended || round !== this.round) return;
      this.problem = problem;
      this.searching = false;
      this.changed();
    } finally {
      if (this.under.get(page) === under) this.under.delete(page);
    }
  }

  take(page, found) {
    this.forget(page);
    this.pages.set(page, found.cases);
    for (const [place, one] of found.cases.entries()) this.places.set(one.route, page * this.size + place);
    for (const old of [...this.pages.keys()].slice(0, Math.max(0, this.pages.size - KEPT_PAGES))) this.forget(old);
    this.total = found.total;
    this.cases = found.distinct;
    this.rate = found.rate;
    this.counts = found.counts ?? null;
    this.worst = found.worst ?? null;
    this.searching = !found.ready;
    if (!found.ready) this.later = setTimeout(() => this.refresh(), AGAIN_MS);
    this.under.delete(page);
    this.changed();
  }

  forget(page) {
    for (const [place, one] of (this.pages.get(page) ?? []).entries())
      if (this.places.get(one.route) === page * this.size + place) this.places.delete(one.route);
    this.pages.delete(page);
  }
}
