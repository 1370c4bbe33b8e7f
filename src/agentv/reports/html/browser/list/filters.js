// What stands above the list: search, outcomes, and a choice for each thing of which there are several.

import { casesAndRows, countsOf, isFlaky } from "../data/cases.js";
import { changesOf, DIRECTIONS } from "../data/changes.js";
import { byName, cleared, isChosen, ORDERS } from "../data/choice.js";
import { count, percent } from "../data/numbers.js";
import { certainty, EARLY, rateOfCases } from "../data/rates.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { plainly, shortened } from "../data/texts.js";
import { button, element } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";

const SEARCH_AFTER_MS = 120;
const MOST_NAMES = 60;

export class Filters {
  constructor(run, base, changed) {
    this.run = run;
    this.changed = changed;
    this.search = element("input", {
      type: "search",
      class: "search",
      placeholder: "Search ids, inputs, answers, checks",
      "aria-label": "Search all texts",
      spellcheck: "false",
      input: () => this.typed(),
    });
    this.chips = this.outcomes();
    this.selects = this.choices(base);
    this.told = element("p", { class: "told", role: "status" });
    this.clear = button("Clear", () => this.changed(cleared(this.choice)), { class: "quiet" });
    this.order = this.select("order", "Order", Object.entries(ORDERS));
    this.element = element(
      "div",
      { class: "filters" },
      element("div", { class: "searchbox" }, this.search, element("kbd", { "aria-hidden": "true" }, "/")),
      element("div", { class: "chips", role: "group", "aria-label": "Outcome" }, this.chips),
      element("div", { class: "selects" }, this.selects),
      element("div", { class: "orderline" }, element("span", { "aria-hidden": "true" }, "Order"), this.order),
      element("div", { class: "toldline" }, this.told, this.clear),
    );
  }

  outcomes() {
    const counts = countsOf(this.run.cases);
    const flaky = this.run.cases.filter(isFlaky).length;
    const chips = STATUSES.filter((status) => counts[status]).map((status) =>
      this.chip(status, [statusIcon(status), `${counts[status].toLocaleString("en")} ${STATUS_WORDS[status]}`]),
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

  choices(base) {
    const { suites, targets, prompts, variants, tags } = this.run.tables;
    const plain = (names) => [...names].sort(byName.compare).map((name) => [name, plainly(name)]);
    return [
      base
        ? this.select("change", "Any change", [
            ...changesOf(this.run),
            ...DIRECTIONS.map(([change, title]) => [change, title.toLowerCase()]),
          ])
        : null,
      suites.length > 1 ? this.select("suite", "All suites", plain(suites)) : null,
      targets.length > 1 ? this.select("target", "All targets", plain(targets)) : null,
      prompts.length > 1 ? this.select("prompt", "All prompts", plain(prompts)) : null,
      variants.length > 1 ? this.select("variant", "All variants", plain(variants)) : null,
      tags.length ? this.select("tag", "All tags", plain(tags)) : null,
      this.run.tables.assertions.length ? this.select("assertion", "All assertions", assertionChoices(this.run)) : null,
      this.select("why", "Any reason", reasonChoices(this.run)),
    ];
  }

  select(name, all, choices) {
    if (!choices.length) return null;
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
    for (const select of [...this.selects, this.order].filter(Boolean)) {
      const wanted = choice[select.dataset.name];
      if (wanted && ![...select.options].some((option) => option.value === wanted))
        select.append(element("option", { value: wanted }, shortened(plainly(wanted))));
      select.value = wanted;
      select.classList.toggle("set", Boolean(wanted) && select !== this.order);
    }
    this.clear.hidden = !isChosen(choice);
  }

  tell(found, searching) {
    const rows = this.run.cases;
    const told = byOutcome(this.choice) ? null : rateOfCases(found);
    const all = casesAndRows(rows);
    const some =
      found.length === rows.length
        ? all
        : all.includes(" in ")
          ? `${casesAndRows(found)}, of ${all}`
          : `${found.length.toLocaleString("en")} of ${all}`;
    const share =
      told &&
      (told.of === EARLY
        ? `pass rate ${percent(told.rate)} over ${count(told.judged, "judged case")}`
        : `${percent(told.rate)} of ${count(told.judged, told.of)} passed`);
    const rate = told ? ` · ${share} (${certainty(told)})` : "";
    this.told.textContent = searching ? `${some}, searching…` : some + rate;
  }
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
