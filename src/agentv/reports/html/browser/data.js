// The data of the page: short entries of all trials, read at once; the rest of a trial, read when it is opened.

const PLACES = [
  "id", "suite", "target", "prompt", "sample", "repeat", "status", "score", "threshold", "duration", "cost", "tags",
  "assertions", "teaser", "group", "sha", "cluster", "variant",
];
const KEPT_CHUNKS = 8;

class Run {
  constructor(number, facts) {
    this.facts = facts;
    this.summary = facts.summary;
    this.tables = JSON.parse(elementsOf("tables", number)[0].textContent);
    this.chunks = elementsOf("whole", number);
    this.lines = new Map();
    this.trials = elementsOf("short", number).flatMap((found, chunk) =>
      found.textContent.split("\n").map((line, place) => this.trial(JSON.parse(line), chunk, place)),
    );
    this.cases = this.grouped();
    this.failures = JSON.parse(elementsOf("failures", number)[0].textContent);
    for (const { cause, numbers } of this.failures.groups) for (const place of numbers) this.trials[place].cause = cause;
  }

  trial(values, chunk, place) {
    const made = { run: this, chunk, place };
    PLACES.forEach((name, number) => {
      made[name] = values[number];
    });
    made.suite = this.tables.suites[made.suite];
    made.target = this.tables.targets[made.target];
    made.prompt = made.prompt < 0 ? null : this.tables.prompts[made.prompt];
    made.variant = made.variant < 0 ? null : this.tables.variants[made.variant];
    made.tags = made.tags.map((tag) => this.tables.tags[tag]);
    made.status = STATUSES[made.status];
    return made;
  }

  // A case: its samples, in their order, and what they come to.
  grouped() {
    const groups = [];
    const cases = [];
    for (const trial of this.trials) {
      if (trial.group < 0) cases.push(caseOf([trial], trial.status));
      else if (groups[trial.group]) groups[trial.group].trials.push(trial);
      else {
        groups[trial.group] = caseOf([trial], STATUSES[this.tables.verdicts[trial.group]], this.tables.early[trial.group]);
        cases.push(groups[trial.group]);
      }
    }
    for (const one of groups) settle(one);
    for (const one of cases) for (const trial of one.trials) trial.of = one;
    return cases;
  }

  linesOf(chunk) {
    if (!this.lines.has(chunk)) {
      if (this.lines.size >= KEPT_CHUNKS) this.lines.delete(this.lines.keys().next().value);
      this.lines.set(chunk, this.chunks[chunk].textContent.split("\n"));
    }
    return this.lines.get(chunk);
  }
}

function elementsOf(kind, number) {
  return [...document.querySelectorAll(`script.${kind}[data-run="${number}"]`)];
}

function whole(trial) {
  return JSON.parse(trial.run.linesOf(trial.chunk)[trial.place]);
}

// `early`, of a case whose samples may end early: why they did, and bounds of its rate; its mean score leans to one side.
function caseOf(trials, status, early = null) {
  const { id, suite, target, prompt, variant, tags, teaser, sha } = trials[0];
  return { id, suite, target, prompt, variant, tags, teaser, sha, trials, status, early, score: trials[0].score, base: null, change: null };
}

// The mean of what was judged, and the reason of the sample that did worst.
function settle(one) {
  one.trials.sort((first, second) => first.sample - second.sample);
  const scores = one.trials.map((trial) => trial.score).filter((value) => value !== null);
  one.score = scores.length ? scores.reduce((sum, value) => sum + value, 0) / scores.length : null;
  one.teaser = (one.trials.find((trial) => trial.status === one.status) ?? one.trials[0]).teaser;
}

function sum(values) {
  const told = values.filter((value) => value !== null && value !== undefined);
  return told.length ? told.reduce((total, value) => total + value, 0) : null;
}

function passedSamples(one) {
  return one.trials.filter((trial) => trial.status === "passed").length;
}

function isFlaky(one) {
  const judged = one.trials.filter((trial) => trial.status === "passed" || trial.status === "failed").length;
  return passedSamples(one) > 0 && passedSamples(one) < judged;
}

// A hash that finds the case again in this file and, where ids stay, in the report of another run.
function giveRoutes(cases) {
  const taken = new Map();
  for (const one of cases) {
    const parts = [one.suite, one.id, one.target, ...(one.prompt === null ? [] : [one.prompt]), ...(one.variant === null ? [] : [one.variant])];
    let route = parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/");
    for (let next = 2; taken.has(route); next += 1) route = `${route.replace(/~\d+$/, "")}~${next}`;
    taken.set(route, one);
    one.route = route;
  }
  return taken;
}

// Matched as `agentv compare` does: by suite and case; by target and variant unless both runs have a single one, and by
// prompt unless both have a single one in that suite.
function matchRuns(run, base) {
  const single = (name) => [run, base].every(({ cases }) => new Set(cases.map((one) => one[name])).size === 1);
  const [target, variant] = [single("target"), single("variant")];
  const prompts = [run, base].map(promptsBySuite);
  const prompt = (one) => (prompts.every((found) => found.get(one.suite)?.size === 1) ? null : one.prompt);
  const key = (one) => JSON.stringify([one.suite, one.id, prompt(one), variant ? null : one.variant, target ? null : one.target]);
  const earlier = new Map(base.cases.map((one) => [key(one), one]));
  for (const one of run.cases) {
    one.base = earlier.get(key(one)) ?? null;
    one.change = changeOf(one);
    earlier.delete(key(one));
  }
  return [...earlier.values()];
}

function promptsBySuite({ cases }) {
  const found = new Map();
  for (const one of cases) found.set(one.suite, (found.get(one.suite) ?? new Set()).add(one.prompt));
  return found;
}

const CHANGES = {
  worse: "now fails",
  better: "now passes",
  lower: "scored lower",
  higher: "scored higher",
  same: "as before",
  unjudged: "not graded in both",
  edited: "case was edited",
  added: "not in the other run",
};

function changeOf(one) {
  const base = one.base;
  if (base === null) return "added";
  if (base.sha !== one.sha) return "edited";
  const judged = (status) => status === "passed" || status === "failed";
  if (!judged(one.status) || !judged(base.status)) return "unjudged";
  if (one.status !== base.status) return one.status === "passed" ? "better" : "worse";
  if (one.early || base.early) return "same";
  const moved = (one.score ?? 0) - (base.score ?? 0);
  if (Math.abs(moved) < 1e-9) return "same";
  return moved < 0 ? "lower" : "higher";
}
