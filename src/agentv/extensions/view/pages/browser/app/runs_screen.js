// All runs of the project: search, filters, and what runs now.

/** @import { Api } from "../data/api.js" */

import { count } from "../data/numbers.js";
import { plainly, shortened } from "../data/texts.js";
import { button, element, hidden } from "../dom/elements.js";
import { commandLine } from "../dom/text.js";
import { unfocus } from "../page/frame.js";
import { Loading } from "../page/loading.js";
import { deleteRun, nameRun } from "./edit_dialogs.js";
import { runAddress, runRow } from "./run_rows.js";

const LIMIT = 50;
const MOST_CHOSEN = 500;
const MOST_PICKED = 9;
const SEARCH_AFTER = 120;
const FILTERS = ["q", "suite", "target", "tag", "state"];
const STATE_NAMES = ["running", "finished", "interrupted", "unreadable"];

export class RunsScreen {
  /**
   * @param {Api} api
   * @param {any} project what the server says of it
   */
  constructor(api, project) {
    this.api = api;
    this.project = project;
    this.title = `Runs · ${project.name}`;
    this.filter = null;
    this.runs = [];
    /** @type {string[]} */
    this.picked = [];
    this.selected = -1;
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.search = element("input", {
      type: "search",
      class: "search",
      placeholder: "Search names, suites, targets, tags",
      "aria-label": "Search runs",
      spellcheck: "false",
      input: () => this.typed(),
    });
    this.selects = element("div", { class: "selects" });
    this.told = element("p", { class: "told", role: "status" });
    this.compare = element("p", { class: "comparebar", hidden: true });
    this.place = element("div", { class: "runsplace" });
    this.loading = new Loading(this.place);
    this.main.append(
      element(
        "article",
        { class: "runs wider" },
        element("h1", { tabindex: -1 }, "Runs"),
        element(
          "div",
          { class: "runfilters" },
          element("div", { class: "searchbox" }, this.search, element("kbd", { "aria-hidden": "true" }, "/")),
          this.selects,
          this.told,
        ),
        this.place,
        this.compare,
      ),
    );
    this.ended = api.listen(
      api.address(["events"]),
      {
        runs: (run) => this.changed(run),
        gone: ({ run_id: id }) => this.gone(id),
      },
      () => this.load(this.runs.length),
    );
  }

  leavePage() {
    this.ended();
    this.loading.stop();
  }

  goTo(_, parameters) {
    const filter = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
    if (JSON.stringify(filter) === JSON.stringify(this.filter)) return;
    this.filter = filter;
    if (this.search.value.trim() !== filter.q) this.search.value = filter.q;
    this.load();
  }

  // As many as are shown already, where they are read again.
  load(known = 0) {
    const limit = Math.min(Math.max(known, LIMIT), MOST_CHOSEN);
    return this.loading.during(async (signal) => {
      const found = await this.api.get(["runs"], { ...this.filter, limit }, signal);
      this.runs = found.runs;
      this.next = found.next;
      this.total = found.total;
      this.offer(found.names);
      return this.table();
    });
  }

  /** More of the same, below. */
  async more(pressed) {
    pressed.disabled = true;
    try {
      const found = await this.api.get(["runs"], { ...this.filter, limit: LIMIT, after: this.next });
      this.runs.push(...found.runs);
      this.next = found.next;
      this.loading.show(this.table());
    } catch (problem) {
      pressed.disabled = false;
      pressed.textContent = `${problem.message} Try again`;
    }
  }

  typed() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.choose({ q: this.search.value.trim() }), SEARCH_AFTER);
  }

  choose(changes) {
    const query = new URLSearchParams(
      Object.entries({ ...this.filter, ...changes }).filter(([, value]) => value !== ""),
    );
    location.replace(query.size ? `#/?${query}` : "#/");
    this.goTo("", query);
  }

  offer(names) {
    const choices = [
      ["suite", "All suites", names?.suites ?? []],
      ["target", "All targets", names?.targets ?? []],
      ["tag", "All tags", names?.tags ?? []],
      ["state", "Any state", STATE_NAMES],
    ];
    this.selects.replaceChildren(
      ...choices
        .filter(([name, , values]) => values.length > 1 || this.filter[name])
        .map(([name, all, values]) => this.select(name, all, values)),
    );
  }

  select(name, all, values) {
    const chosen = this.filter[name];
    const known = chosen && !values.includes(chosen) ? [...values, chosen] : values;
    const made = element(
      "select",
      { "aria-label": all, class: chosen ? "set" : null, change: () => this.choose({ [name]: made.value }) },
      element("option", { value: "" }, all),
      known.map((value) => element("option", { value }, shortened(plainly(value)))),
    );
    made.value = chosen;
    return made;
  }

  table() {
    this.told.textContent = this.isFiltered() ? `${count(this.total, "run")} found` : count(this.total, "run");
    if (!this.runs.length) return this.empty();
    const trend = this.runs.some((run) => run.trend?.length);
    const cost = this.runs.some((run) => run.cost_usd !== null);
    this.columns = { trend, cost };
    this.body = element(
      "tbody",
      {},
      this.runs.map((run) => this.row(run)),
    );
    const heads = ["Run", "Pass rate", trend ? "Trend" : null, cost ? "Cost" : null, "Took", "Began"];
    const head = element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("td", {}, hidden("Compare")),
        heads
          .filter(Boolean)
          .map((title) => element("th", { scope: "col", class: title === "Cost" ? "cost" : null }, title)),
      ),
    );
    this.mark();
    return element(
      "div",
      { class: "panel scrolls runtable" },
      element("table", {}, head, this.body),
      this.next ? this.moreButton() : null,
    );
  }

  moreButton() {
    const made = button(
      `Show more: ${(this.total - this.runs.length).toLocaleString("en")} left`,
      () => this.more(made),
      { class: "more" },
    );
    return made;
  }

  isFiltered() {
    return Object.values(this.filter).some(Boolean);
  }

  empty() {
    if (this.isFiltered())
      return element(
        "div",
        { class: "panel nothing" },
        element("p", {}, "No runs match."),
        button("Clear the filters", () => this.choose(Object.fromEntries(FILTERS.map((name) => [name, ""]))), {
          class: "quiet",
        }),
      );
    return element(
      "div",
      { class: "panel nothing" },
      element("h2", {}, "No runs yet"),
      element("p", {}, "Every run of this project appears here, as soon as it starts."),
      commandLine("In a terminal", "agentv eval"),
    );
  }

  row(run) {
    return runRow(run, this.columns, (one, chosen) => this.pick(one.run_id, chosen), this.picked.includes(run.run_id));
  }

  // Those that were marked last are compared; the oldest one is the base.
  pick(id, chosen) {
    this.picked = this.picked.filter((one) => one !== id);
    if (chosen) this.picked = [...this.picked, id].slice(-MOST_PICKED);
    for (const row of this.body.rows) row.querySelector("input").checked = this.picked.includes(row.dataset.run);
    const began = (one) => this.runs[this.placeOf(one)]?.started ?? "";
    const ordered = [...this.picked].sort((one, other) => (began(one) < began(other) ? -1 : 1));
    const query = new URLSearchParams(ordered.map((one) => ["run", one]));
    const many = ordered.length === 2 ? "two" : String(ordered.length);
    this.compare.hidden = !this.picked.length;
    this.compare.replaceChildren(
      ordered.length > 1
        ? element("a", { class: "primary", href: `#/compare?${query}` }, `Compare the ${many} runs`)
        : element("span", { class: "note" }, "Choose another run to compare this one with."),
      ...this.edits(),
      button("Cancel", () => this.pickNone(), { class: "quiet" }),
    );
  }

  // What may be done with the one that is marked.
  edits() {
    const run = this.picked.length === 1 ? this.runs[this.placeOf(this.picked[0])] : null;
    if (!run || !this.project.edit || run.state === "running") return [];
    const named = (one) => {
      this.pickNone();
      this.changed(one);
    };
    return [
      button("Name…", () => nameRun(this.api, run, named), { class: "quiet" }),
      button("Delete…", () => deleteRun(this.api, run, () => this.gone(run.run_id)), { class: "quiet" }),
    ];
  }

  pickNone() {
    for (const id of this.picked) this.pick(id, false);
  }

  // A run began, went on or ended.
  changed(run) {
    const place = this.placeOf(run.run_id);
    if (place < 0) {
      if (!this.loading.under) this.load();
      return;
    }
    const row = this.body.rows[place];
    const held = row.contains(document.activeElement);
    this.runs[place] = { ...this.runs[place], ...run };
    row.replaceWith(this.row(this.runs[place]));
    if (held) this.body.rows[place].querySelector("a").focus();
    this.mark();
  }

  gone(id) {
    const place = this.placeOf(id);
    if (place < 0) return;
    this.pick(id, false);
    this.runs.splice(place, 1);
    this.total -= 1;
    this.loading.show(this.table());
  }

  placeOf(id) {
    return this.runs.findIndex((one) => one.run_id === id);
  }

  mark() {
    for (const [place, row] of [...(this.body?.rows ?? [])].entries())
      row.classList.toggle("chosen", place === this.selected);
  }

  step(by) {
    if (!this.runs.length) return;
    this.selected = Math.min(this.runs.length - 1, Math.max(0, this.selected + by));
    this.mark();
    const row = this.body.rows[this.selected];
    row.querySelector("a").focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  open() {
    const run = this.runs[Math.max(0, this.selected)];
    if (run) location.hash = runAddress(run.run_id);
  }

  pickSelected() {
    const run = this.runs[this.selected];
    if (run) this.pick(run.run_id, !this.picked.includes(run.run_id));
  }

  leave() {
    if (document.activeElement?.matches("input, select")) unfocus();
    else if (this.picked.length) this.pickNone();
    else this.choose(Object.fromEntries(FILTERS.map((name) => [name, ""])));
  }

  keys() {
    return {
      "/": () => {
        this.search.focus();
        this.search.select();
      },
      j: () => this.step(1),
      k: () => this.step(-1),
      x: () => this.pickSelected(),
      Enter: () => this.open(),
      Escape: () => this.leave(),
    };
  }
}
