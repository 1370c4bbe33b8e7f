// How a grid is laid out: which columns are shown, how tall rows are, and how texts are. The browser keeps it, the columns
// for each set of suites.

import { plainly, shortened } from "../data/texts.js";
import { store, stored } from "../dom/storage.js";

/** Heights of rows in pixels, and how many lines of a text they hold. */
export const DENSITIES = {
  compact: { label: "Compact", height: 38, lines: 1 },
  normal: { label: "Normal", height: 128, lines: 4 },
  tall: { label: "Tall", height: 258, lines: 10 },
};

const FIRST_VARIABLES = matchMedia("(max-width: 560px)").matches ? 0 : 2; // shown until somebody chooses
const INPUT = "input";

export class GridLayout {
  /** @param {string[]} suites */
  constructor(suites) {
    this.name = `grid-columns-${suites.join("\n")}`;
    const density = stored("grid-density") ?? "normal";
    this.density = Object.hasOwn(DENSITIES, density) ? density : "normal";
    this.heat = stored("grid-heat") === "yes";
    this.wrap = stored("grid-wrap") !== "no";
    /** @type {Record<string, boolean>} columns that somebody has shown or hidden, by name */
    this.chosen = read(this.name);
    /** @type {string[]} names of variables, in the order in which they were met */
    this.variables = [];
    /** @type {Map<string, string>} the first value of each */
    this.first = new Map();
    /** @type {Set<string>} those that have several values */
    this.vary = new Set();
  }

  get height() {
    return DENSITIES[this.density].height;
  }

  get lines() {
    return this.wrap ? DENSITIES[this.density].lines : 1;
  }

  /** Note the variables of a row. @param {import("../data/types.d.ts").GridRow} row */
  meet(row) {
    for (const [name, { text }] of Object.entries(row.vars)) {
      if (!this.first.has(name)) {
        this.first.set(name, text);
        this.variables.push(name);
      } else if (this.first.get(name) !== text) this.vary.add(name);
    }
  }

  /** Whether a column left of the answers is a variable; else it is the input of the cases. */
  isVariable(name) {
    return this.first.has(name);
  }

  /** What can stand left of the answers. */
  get offered() {
    return this.isVariable(INPUT) ? this.variables : [...this.variables, INPUT];
  }

  /** What does. */
  get shown() {
    return this.offered.filter((name) => this.shows(name));
  }

  /** Whether a variable is shown, or the input: what somebody chose, else the first variables that differ by case. */
  shows(name) {
    if (Object.hasOwn(this.chosen, name)) return this.chosen[name];
    const telling = this.vary.size ? this.variables.filter((one) => this.vary.has(one)) : this.variables;
    return name === INPUT && !this.isVariable(INPUT)
      ? !this.variables.length
      : telling.slice(0, FIRST_VARIABLES).includes(name);
  }

  showsAnswers(column) {
    return this.chosen[answersName(column)] ?? true;
  }

  choose(name, shown) {
    this.chosen[name] = shown;
    store(this.name, JSON.stringify(this.chosen));
  }

  setDensity(density) {
    this.density = density;
    store("grid-density", density);
  }

  setHeat(heat) {
    this.heat = heat;
    store("grid-heat", heat ? "yes" : "no");
  }

  setWrap(wrap) {
    this.wrap = wrap;
    store("grid-wrap", wrap ? "yes" : "no");
  }
}

/** The name of a column of answers among those that can be hidden. */
export function answersName({ target, prompt, variant }) {
  return JSON.stringify([target, prompt, variant]);
}

function read(name) {
  try {
    const found = JSON.parse(stored(name) ?? "{}");
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

/** What a column ran with, in a line. */
export function columnWords({ prompt, target, variant }) {
  return [prompt, target, variant]
    .filter((name) => name !== null)
    .map((name) => shortened(plainly(name), 40))
    .join(" · ");
}

export function asTrial(cell) {
  return typeof cell.trial === "string" ? { trial: cell.trial } : cell.trial;
}

// How a column differs from the one that it is compared with, and what a case takes; where only one thing differs.
export function comparedIn(matrix, column) {
  const several = ["target", "prompt", "variant"].filter((name) => (matrix?.[`${name}s`].length ?? 0) > 1);
  const [by] = several;
  const all = several.length === 1 ? (matrix.comparisons ?? []).filter((one) => one.by === by) : [];
  const own = all.find(({ candidate }) => candidate === column[by]);
  if (own)
    return {
      moved: own.difference,
      taken: own.usage_rows.map(
        ([name, , after, difference]) => `${name} ${after}${difference ? `, ${difference}` : ""}`,
      ),
    };
  const base = all.find((one) => one.base === column[by]);
  return { moved: "", taken: (base?.usage_rows ?? []).map(([name, before]) => `${name} ${before}`) };
}
