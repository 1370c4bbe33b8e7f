// The data of a file: short entries of all trials, read at once; the rest of a trial, read when it is opened.

import { caseOf, settle } from "./cases.js";
import { STATUSES } from "./statuses.js";

const PLACES = [
  "id",
  "file",
  "target",
  "prompt",
  "sample",
  "repeat",
  "status",
  "score",
  "threshold",
  "duration",
  "cost",
  "tags",
  "assertions",
  "teaser",
  "group",
  "sha",
  "cluster",
  "variant",
  "position",
];

const KEPT_CHUNKS = 8;

export class Run {
  constructor(number, facts) {
    this.facts = facts;
    this.summary = facts.summary;
    this.tables = JSON.parse(elementsOf("tables", number)[0].textContent);
    this.chunks = elementsOf("whole", number);
    this.lines = new Map();
    this.trials = elementsOf("short", number).flatMap((found, chunk) =>
      found.textContent.split("\n").map((line, place) => this.trial(JSON.parse(line), chunk, place)),
    );
    for (const name of ["suite", "target", "prompt", "variant"]) this.tables[`${name}s`] = this.namesThatRan(name);
    this.cases = this.grouped();
    this.failures = JSON.parse(elementsOf("failures", number)[0].textContent);
    for (const { cause, numbers } of this.failures.groups)
      for (const place of numbers) this.trials[place].cause = cause;
  }

  trial(values, chunk, place) {
    /** @type {any} */
    const made = { run: this, chunk, place };
    PLACES.forEach((name, number) => {
      made[name] = values[number];
    });
    const last = (number) => (number < 0 ? Infinity : number); // cases without a prompt come after those with one
    made.order = [made.file, made.position, last(made.prompt), made.target, last(made.variant)];
    [made.suite, made.path] = this.tables.files[made.file];
    made.target = this.tables.targets[made.target];
    made.prompt = made.prompt < 0 ? null : this.tables.prompts[made.prompt];
    made.variant = made.variant < 0 ? null : this.tables.variants[made.variant];
    made.tags = made.tags.map((tag) => this.tables.tags[tag]);
    made.status = STATUSES[made.status];
    return made;
  }

  // The tables have all names that the suites of the run have.
  namesThatRan(name) {
    const ran = new Set(this.trials.map((trial) => trial[name]));
    const known = name === "suite" ? [...ran] : this.tables[`${name}s`];
    return known.filter((one) => ran.has(one));
  }

  // A case: its samples, in their order, and what they come to.
  grouped() {
    const groups = [];
    const cases = [];
    for (const trial of this.trials) {
      if (trial.group < 0) cases.push(caseOf([trial], trial.status));
      else if (groups[trial.group]) groups[trial.group].trials.push(trial);
      else {
        groups[trial.group] = caseOf(
          [trial],
          STATUSES[this.tables.verdicts[trial.group]],
          this.tables.early[trial.group],
        );
        cases.push(groups[trial.group]);
      }
    }
    for (const one of groups) settle(one);
    for (const one of cases) {
      one.tables = this.tables;
      for (const trial of one.trials) trial.of = one;
    }
    return cases;
  }

  whole(trial) {
    return JSON.parse(this.linesOf(trial.chunk)[trial.place]);
  }

  linesOf(chunk) {
    if (!this.lines.has(chunk)) {
      if (this.lines.size >= KEPT_CHUNKS) this.lines.delete(this.lines.keys().next().value);
      this.lines.set(chunk, this.chunks[chunk].textContent.split("\n"));
    }
    return this.lines.get(chunk);
  }
}

export function elementsOf(kind, number) {
  return [...document.querySelectorAll(`script.${kind}[data-run="${number}"]`)];
}
