// Which cases are chosen, and in what order. All of it stands in the address, so that a view can be sent on.

import { isFlaky, sum } from "./cases.js";

export const ORDERS = {
  worst: "Worst first",
  file: "File order",
  run: "In order of completion",
  name: "By name",
  slowest: "Slowest first",
  costliest: "Costliest first",
};

/** Orders of the rows of a grid; those of a list are `ORDERS`. */
export const GRID_ORDERS = {
  "": "File order",
  worst: "Worst first",
  name: "By name",
  slowest: "Slowest first",
  costliest: "Costliest first",
};

const OF_LISTS = ["status", "suite", "target", "prompt", "variant", "tag", "assertion", "why", "change", "q", "order"];
const OF_GRIDS = ["show", "sort", "against", "where"];
const CHOICES = [...OF_LISTS, ...OF_GRIDS];
const NOT_FILTERS = new Set(["order", "sort", "against"]);

export function emptyChoice() {
  return {
    status: "",
    suite: "",
    target: "",
    prompt: "",
    variant: "",
    tag: "",
    assertion: "",
    why: "",
    change: "",
    q: "",
    order: "worst",
    show: "",
    sort: "",
    against: "",
    where: "",
  };
}

// Without filters, in the order that was chosen.
export function cleared({ order, sort, against }) {
  return { ...emptyChoice(), order, sort, against };
}

// What a list of cases can be asked for.
export function ofLists(choice) {
  return Object.fromEntries(OF_LISTS.map((name) => [name, choice[name]]));
}

export function choiceFrom(parameters) {
  const choice = emptyChoice();
  for (const name of CHOICES) if (parameters.has(name)) choice[name] = parameters.get(name);
  if (!Object.hasOwn(ORDERS, choice.order)) choice.order = "worst";
  if (!Object.hasOwn(GRID_ORDERS, choice.sort)) choice.sort = "";
  return choice;
}

export function choiceText(choice) {
  const parameters = new URLSearchParams();
  const usual = emptyChoice();
  for (const name of CHOICES) if (choice[name] !== usual[name]) parameters.set(name, choice[name]);
  return String(parameters);
}

export function isChosen(choice) {
  const usual = emptyChoice();
  return CHOICES.some((name) => !NOT_FILTERS.has(name) && choice[name] !== usual[name]);
}

// An assertion is chosen as `failed type` or `any type`, with the name after a colon where one name is meant.
function assertionTest(run, written) {
  if (!written) return () => true;
  const failed = written.startsWith("failed ");
  const wanted = written.slice(written.indexOf(" ") + 1);
  const numbers = new Set();
  run.tables.assertions.forEach(([type, name], number) => {
    if (type === wanted || name === wanted) numbers.add(number);
  });
  return (one) =>
    one.trials.some((trial) => {
      for (let at = 0; at < trial.assertions.length; at += 2)
        if (numbers.has(trial.assertions[at]) && (!failed || trial.assertions[at + 1] !== 0)) return true;
      return false;
    });
}

// Whether a case ended in a way that is chosen.
export function statusTest(choice) {
  const statuses = new Set(choice.status.split(" ").filter(Boolean));
  return (one) => !statuses.size || statuses.has(one.status) || (statuses.has("flaky") && isFlaky(one));
}

export function chosenCases(run, choice) {
  const ended = statusTest(choice);
  const asserted = assertionTest(run, choice.assertion);
  const found = run.cases.filter(
    (one) =>
      ended(one) &&
      (!choice.suite || one.suite === choice.suite) &&
      (!choice.target || one.target === choice.target) &&
      (!choice.prompt || one.prompt === choice.prompt) &&
      (!choice.variant || one.variant === choice.variant) &&
      (!choice.tag || one.tags.includes(choice.tag)) &&
      (!choice.why || hasCause(one, choice.why)) &&
      (!choice.change || choice.change.split(" ").includes(one.change)) &&
      asserted(one),
  );
  return ordered(found, choice.order);
}

// The causes for which trials of a case did not pass.
function hasCause(one, cause) {
  return one.trials.some((trial) => trial.cause === cause);
}

const SEVERITY = { failed: 0, errored: 1, skipped: 2, shown: 3, passed: 4 };
const CHANGE_RANK = { worse: 0, lower: 1 };
export const byName = new Intl.Collator("en", { numeric: true });

/** Compare two lists of numbers of the same length. */
export function byPlaces(one, other) {
  const at = one.findIndex((number, place) => number !== other[place]);
  return at < 0 ? 0 : one[at] - other[at];
}

const COMPARISONS = {
  worst: (one, other) =>
    (CHANGE_RANK[one.change] ?? 2) - (CHANGE_RANK[other.change] ?? 2) ||
    SEVERITY[one.status] - SEVERITY[other.status] ||
    (one.score ?? 2) - (other.score ?? 2),
  file: (one, other) => byPlaces(one.order, other.order),
  name: (one, other) => byName.compare(one.suite, other.suite) || byName.compare(one.id, other.id),
  slowest: (one, other) =>
    sum(other.trials.map((trial) => trial.duration)) - sum(one.trials.map((trial) => trial.duration)),
  costliest: (one, other) =>
    (sum(other.trials.map((trial) => trial.cost)) ?? -1) - (sum(one.trials.map((trial) => trial.cost)) ?? -1),
};

function ordered(cases, order) {
  const compare = COMPARISONS[order];
  return compare ? cases.sort(compare) : cases;
}
