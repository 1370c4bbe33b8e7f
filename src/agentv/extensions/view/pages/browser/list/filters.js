// What stands above the list: search, outcomes, and a choice for each thing of which there are several.

import { casesAndRows, severalRows } from "../data/cases.js";
import { changeWords } from "../data/changes.js";
import { byName, cleared, isChosen, ORDERS } from "../data/choice.js";
import { count, percent } from "../data/numbers.js";
import { certainty, countedWords, isShare } from "../data/rates.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { plainly, shortened } from "../data/texts.js";
import { button, element } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";

const SEARCH_AFTER_MS = 120;
const MOST_NAMES = 60;

/** @import { Choice, Counts, Overview, Results } from "../data/types.d.ts" */

export class Filters {
  /**
   * @param {(choice: Choice) => void} changed
   */
  constructor(changed) {
    this.changed = changed;
    this.search = element("input", {
      type: "search",
      class: "search",
      placeholder: "Search ids, inputs, answers, checks",
      "aria-label": "Search all texts",
      spellcheck: "false",
      input: () => this.typed(),
    });
    this.chipBox = element("div", { class: "chips", role: "group", "aria-label": "Outcome" });
    this.selectBox = element("div", { class: "selects" });
    this.told = element("p", { class: "told", role: "status" });
    this.clear = button("Clear", () => this.changed(cleared(this.choice)), { class: "quiet" });
    this.order = this.select("order", "Order", Object.entries(ORDERS));
    this.element = element(
      "div",
      { class: "filters" },
      element("div", { class: "searchbox" }, this.search, element("kbd", { "aria-hidden": "true" }, "/")),
      this.chipBox,
      this.selectBox,
      element("div", { class: "orderline" }, element("span", { "aria-hidden": "true" }, "Order"), this.order),
      element("div", { class: "toldline" }, this.told, this.clear),
    );
  }

  /**
   * What there is to choose from; while a run goes on, there comes to be more.
   *
   * @param {Overview} run
   */
  offer(run) {
    this.run = run;
    const offered = JSON.stringify([run.counts.rows, run.counts.flaky, this.choicesIn(run)]);
    if (offered === this.offered) return;
    this.offered = offered;
    const focused = this.element.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-name")
      : null;
    this.chips = this.outcomes();
    this.selects = this.choicesIn(run)
      .filter((one) => one?.[2].length)
      .map(([name, all, choices]) => this.select(name, all, choices));
    this.chipBox.replaceChildren(...this.chips);
    this.selectBox.replaceChildren(...this.selects);
    if (this.choice) this.show(this.choice);
    if (focused) this.selects.find((one) => one.dataset.name === focused)?.focus();
  }

  outcomes() {
    const { rows: counts, flaky } = this.run.counts;
    const chips = STATUSES.filter((status) => counts[status]).map((status) =>
      this.chip(status, [statusIcon(status), element("span", {}, chipWords(counts, status, severalRows(this.run)))]),
    );
    return flaky ? [...chips, this.chip("flaky", [statusIcon("flaky"), `${flaky.toLocaleString("en")} flaky`])] : chips;
  }

  chip(status, label) {
    return button(label, () => this.toggle(status), {
      class: "chip",
      "data-status": status,
      "aria-pressed": "false",
      title: status === "flaky" ? "samples disagree" : null,
    });
  }

  toggle(status) {
    const chosen = new Set(this.choice.status.split(" ").filter(Boolean));
    if (!chosen.delete(status)) chosen.add(status);
    this.changed({ ...this.choice, status: [...chosen].join(" ") });
  }

  choicesIn(run) {
    const { suites, targets, prompts, variants, tags, assertions } = run.tables;
    const plain = (names) => [...names].sort(byName.compare).map((name) => [name, plainly(name)]);
    const several = (name, all, names) => (names.length > 1 ? [name, all, plain(names)] : null);
    const changes = run.against
      ? [
          ...run.against.changes.map((one) => [one[0], changeWords(one)]),
          ...run.against.directions.map(({ change, title }) => [change, title.toLowerCase()]),
        ]
      : [];
    return [
      ["change", "Any change", changes],
      several("suite", "All suites", suites),
      several("target", "All targets", targets),
      several("prompt", "All prompts", prompts),
      several("variant", "All variants", variants),
      ["tag", "All tags", plain(tags)],
      ["assertion", "All assertions", assertions.length ? assertionChoices(run) : []],
      ["why", "Any reason", reasonChoices(run)],
    ];
  }

  select(name, all, choices) {
    const options = choices.map(([value, label]) => element("option", { value }, shortened(label)));
    if (name !== "order") options.unshift(element("option", { value: "" }, all));
    const made = element(
      "select",
      { "aria-label": all, "data-name": name, change: () => this.changed({ ...this.choice, [name]: made.value }) },
      options,
    );
    return made;
  }

  typed() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.changed({ ...this.choice, q: this.search.value.trim() }), SEARCH_AFTER_MS);
  }

  show(choice) {
    this.choice = choice;
    if (this.search.value.trim() !== choice.q) this.search.value = choice.q;
    const statuses = choice.status.split(" ");
    for (const chip of this.chips) chip.setAttribute("aria-pressed", String(statuses.includes(chip.dataset.status)));
    for (const select of [...this.selects, this.order]) {
      const wanted = choice[select.dataset.name];
      if (wanted && ![...select.options].some((option) => option.value === wanted))
        select.append(element("option", { value: wanted }, shortened(plainly(wanted))));
      select.value = wanted;
      select.classList.toggle("set", Boolean(wanted) && select !== this.order);
    }
    this.clear.hidden = !isChosen(choice);
  }

  /** The outcomes of what the search and the other choices find. @param {Counts} counts */
  tellOutcomes(counts) {
    for (const chip of this.chips) {
      const { status } = chip.dataset;
      if (status !== "flaky") chip.lastElementChild.textContent = chipWords(counts, status, severalRows(this.run));
    }
  }

  /** @param {Results} results */
  tell({ total, cases, rate, counts: ended, searching, problem }) {
    if (ended) this.tellOutcomes(ended);
    const { distinct, rows: counts } = this.run.counts;
    const rows = Object.values(counts).reduce((sum_, number) => sum_ + number, 0);
    const all = casesAndRows(distinct, rows);
    const found = distinct === rows || cases === null ? total.toLocaleString("en") : `${casesAndRows(cases, total)},`;
    const some = total === rows ? all : `${found} of ${all}`;
    const told = byOutcome(this.choice) ? null : rate;
    const share = told && `${isShare(told) ? "" : "pass rate "}${percent(told.rate)} ${countedWords(told)}`;
    const words = told ? `${some} · ${share} (${certainty(told)})` : some;
    this.told.textContent = problem ? "" : searching ? `${some}, searching…` : words;
  }
}

// `90 rows passed`; `10 passed` where each case has one row.
function chipWords(counts, status, several) {
  const number = several ? count(counts[status], "row") : counts[status].toLocaleString("en");
  return `${number} ${STATUS_WORDS[status]}`;
}

// Cases that were chosen by how they ended have no rate that says anything.
function byOutcome(choice) {
  return Boolean(choice.status || choice.why || choice.change || choice.assertion.startsWith("failed "));
}

function reasonChoices(run) {
  return run.failures.groups
    .filter(({ trials }) => trials > 1)
    .slice(0, MOST_NAMES)
    .map(({ cause, cases }) => [cause, `${count(cases, "case")}: ${plainly(cause)}`]);
}

// Types, each with those of its cases that did not pass; then names, where they are few enough to choose from.
function assertionChoices(run) {
  const types = [...new Set(run.tables.assertions.map(([type]) => type))].sort(byName.compare);
  const names = [...new Set(run.tables.assertions.map(([, name]) => name))].filter(
    (name) => name !== null && !types.includes(name),
  );
  return [
    ...types.map((type) => [`failed ${type}`, `not passed: ${plainly(type)}`]),
    ...types.map((type) => [`any ${type}`, `has: ${plainly(type)}`]),
    ...(names.length <= MOST_NAMES
      ? names.sort(byName.compare).map((name) => [`failed ${name}`, `not passed: ${plainly(name)}`])
      : []),
  ];
}
