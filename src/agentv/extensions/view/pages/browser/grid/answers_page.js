// The page of all answers: what chooses them, and the grid.

/** @import { GridCell, GridColumn, GridRow } from "../data/types.d.ts" */

import { askedIn, variablesOf } from "../data/cases.js";
import { GRID_ORDERS } from "../data/choice.js";
import { count, duration, moment, money, percent } from "../data/numbers.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { rateOfGroup } from "../data/summary_rates.js";
import { plainly, shortened } from "../data/texts.js";
import { button, element } from "../dom/elements.js";
import { markdownButton, saidText, switchMarkdown } from "../dom/markdown.js";
import { badge, statusIcon } from "../dom/outcomes.js";
import { inline, longText } from "../dom/text.js";
import { Filters } from "../list/filters.js";
import { problemBox } from "../page/loading.js";
import { unitWords } from "../run/rates.js";
import { AnswerGrid } from "./grid.js";
import { answersName, asTrial, columnWords, comparedIn, DENSITIES, GridLayout } from "./layout.js";
import { commentList, ratingBar } from "./ratings.js";

export class AnswersPage {
  /** @param {any} state the page of the run */
  constructor(state) {
    this.state = state;
    this.layout = new GridLayout(state.run.tables.suites);
    this.grid = new AnswerGrid(this.layout, {
      address: (cell) => state.address(cell),
      open: (row, cell, name) => this.openText(row, cell, name),
      filter: (name) => this.filterOf(name),
      home: (row) => this.homeOf(row),
      head: (column) => this.head(column),
      foot: (cell, row) => this.ratingOf(cell, row),
      met: () => this.fillChooser(),
    });
    this.filters = new Filters((choice) => state.choose(choice));
    this.filters.offer(state.run);
    this.chips = element("div", { class: "chips", role: "group", "aria-label": "Rows" });
    this.told = element("span", { class: "told", role: "status" });
    this.dialog = element("dialog", { class: "gfull", "aria-labelledby": "gfull-title" });
    this.columns = element("div", { class: "gmenu" });
    this.heading = element("h1", { class: "unseen", tabindex: -1 }, "Answers");
    this.element = element("div", { class: "answers" }, this.heading, this.toolbar(), this.grid.element, this.dialog);
  }

  toolbar() {
    const sort = element(
      "select",
      { "aria-label": "Order", change: () => this.choose({ sort: sort.value }) },
      Object.entries(GRID_ORDERS).map(([value, label]) => element("option", { value }, label)),
    );
    const density = element(
      "select",
      {
        "aria-label": "Height of rows",
        change: () => {
          this.layout.setDensity(density.value);
          this.grid.redraw();
        },
      },
      Object.entries(DENSITIES).map(([value, { label }]) => element("option", { value }, label)),
    );
    density.value = this.layout.density;
    this.sort = sort;
    this.against = element("select", {
      "aria-label": "Compare with",
      hidden: true,
      change: () => this.choose({ against: this.against.value, show: this.against.value ? "changed" : "" }),
    });
    const markdown = markdownButton();
    markdown.addEventListener("click", () => this.grid.redraw());
    return element(
      "div",
      { class: "gbar" },
      this.filters.element,
      this.chips,
      element(
        "div",
        { class: "gtools" },
        this.told,
        this.against,
        sort,
        density,
        element("details", { class: "gchooser" }, element("summary", { class: "quiet" }, "Columns"), this.columns),
        this.switch("Wrap", "wrap", (on) => this.layout.setWrap(on)),
        this.switch("Heat", "heat", (on) => this.layout.setHeat(on), "Colour answers by their score"),
        markdown,
      ),
    );
  }

  switch(label, name, set, title = null) {
    const made = button(
      label,
      () => {
        set(!this.layout[name]);
        made.setAttribute("aria-pressed", String(this.layout[name]));
        this.grid.redraw();
      },
      { class: "quiet", title, "aria-pressed": String(this.layout[name]) },
    );
    return made;
  }

  choose(changes) {
    this.state.choose({ ...this.state.choice, ...changes });
  }

  /** @type {import("./ratings.js").AnswerRatings | null} */
  get ratings() {
    return this.state.ratings;
  }

  /** Show what is known of the run by now. @param {import("../data/types.d.ts").Overview} run */
  update(run) {
    this.filters.offer(run);
    this.grid.drawHeads();
  }

  /** Find the rows of the choice, with the ratings as they are now. */
  async open() {
    this.search();
    const [others] = await Promise.allSettled([
      this.state.source.others(this.state.run.tables.suites),
      this.ratings?.load(),
    ]);
    if (others.status === "fulfilled") this.offerRuns(others.value);
    if (this.results && this.ratings) this.showRatings(); // where these did not come, answers are shown all the same
  }

  // Runs that answers can be held against, by when they were, how they did, and what they ran.
  offerRuns(runs) {
    const line = ({ name, started, pass_rate: rate, targets }) =>
      [
        name,
        moment(started),
        rate === null ? null : percent(rate),
        targets.map((one) => shortened(plainly(one), 24)).join(", "),
      ]
        .filter(Boolean)
        .join(" · ");
    this.against.replaceChildren(
      element("option", { value: "" }, "Compare with…"),
      ...runs.map((run) => element("option", { value: run.run_id }, line(run))),
    );
    this.against.hidden = !runs.length;
    this.showAgainst();
  }

  showAgainst() {
    const { against } = this.state.choice;
    if (against && ![...this.against.options].some(({ value }) => value === against))
      this.against.append(element("option", { value: against }, against));
    this.against.value = against;
    this.against.classList.toggle("set", Boolean(against));
  }

  showRatings() {
    if (this.state.choice.show === "rated" && this.ratings.cases !== this.ratedBefore) this.search();
    else this.grid.redraw();
    this.ratedBefore = this.ratings.cases;
    this.tell();
  }

  search() {
    this.results?.stop();
    const { choice, source } = this.state;
    this.filters.show(choice);
    this.sort.value = choice.sort;
    this.showAgainst();
    const results = source.grid(choice, () => this.found(results));
    this.results = results;
    this.grid.show(results);
    this.tell();
  }

  found(results) {
    if (results !== this.results) return;
    this.grid.refresh();
    this.tell();
  }

  tell() {
    const { head, total, searching, problem } = this.results;
    if (problem || !head) {
      this.told.textContent = searching ? "Searching…" : "";
      return;
    }
    const all = Math.max(total, this.state.run.counts.distinct);
    this.told.textContent = searching
      ? "Searching…"
      : total === all
        ? count(all, "case")
        : `${total.toLocaleString("en")} of ${count(all, "case")}`;
    this.drawChips(head);
  }

  // Rows by their worst answer, as the tiles of the overview count them.
  drawChips(head) {
    const { status, show } = this.state.choice;
    const { counts, different, flaky, changed } = head;
    const drawn = JSON.stringify([counts, different, flaky, changed, this.ratings?.cases, status, show]);
    if (drawn === this.chipsDrawn) return;
    this.chipsDrawn = drawn;
    const all = STATUSES.reduce((rows, one) => rows + counts[one], 0);
    const chip = (label, pressed, changes) =>
      button(label, () => this.choose(changes), { class: "chip", "aria-pressed": String(pressed) });
    const words = (number, what) => `${number.toLocaleString("en")} ${what}`;
    const made = [
      chip(words(all, "all"), !status && !show, { status: "", show: "" }),
      ...STATUSES.filter((one) => counts[one]).map((one) =>
        chip([statusIcon(one), words(counts[one], STATUS_WORDS[one])], status === one, {
          status: status === one ? "" : one,
        }),
      ),
      flaky || status === "flaky"
        ? chip([statusIcon("flaky"), words(flaky, "flaky")], status === "flaky", {
            status: status === "flaky" ? "" : "flaky",
          })
        : null,
      head.columns.length > 1
        ? chip(words(different, "different"), show === "different", { show: show === "different" ? "" : "different" })
        : null,
      this.ratings?.mayRate || this.ratings?.cases
        ? chip(words(this.ratings.cases, "rated"), show === "rated", { show: show === "rated" ? "" : "rated" })
        : null,
      changed === null
        ? null
        : chip(words(changed, "changed"), show === "changed", { show: show === "changed" ? "" : "changed" }),
    ];
    const focused = [...this.chips.children].indexOf(document.activeElement);
    this.chips.replaceChildren(...made.filter(Boolean));
    if (focused >= 0) /** @type {HTMLElement} */ (this.chips.children[focused])?.focus();
  }

  /** What finds the cases in which a variable contains a text. @param {string} name */
  filterOf(name) {
    if (!this.layout.isVariable(name)) return null;
    const lines = () => this.state.choice.where.split("\n").filter(Boolean);
    const isOwn = (line) => line.startsWith(`${name}=`);
    const box = element("input", {
      type: "search",
      class: "gfilter",
      placeholder: "Filter",
      "aria-label": `Filter by ${plainly(name)}`,
      value: lines()
        .find(isOwn)
        ?.slice(name.length + 1),
      change: () => {
        const text = box.value.trim().replaceAll("\n", " ");
        const others = lines().filter((line) => !isOwn(line));
        this.choose({ where: [...others, ...(text ? [`${name}=${text}`] : [])].join("\n") });
      },
    });
    return box;
  }

  /** What tells a case from one of another suite: the suite, or its file where several suites have that name. */
  homeOf({ suite, path }) {
    const { suites } = this.state.run.facts;
    if (suites.length < 2) return null;
    return suites.filter((/** @type {any} */ { name }) => name === suite).length > 1 ? path : suite;
  }

  fillChooser() {
    const offered = JSON.stringify([this.layout.offered, this.results?.head?.columns]);
    if (offered === this.offeredColumns) return;
    this.offeredColumns = offered;
    const line = (name, label, shown) => {
      const box = element("input", {
        type: "checkbox",
        change: () => {
          this.layout.choose(name, box.checked);
          this.grid.redraw();
        },
      });
      box.checked = shown;
      return element("label", {}, box, " ", inline(label));
    };
    this.columns.replaceChildren(
      element("p", { class: "note" }, "Variables"),
      ...this.layout.offered.map((name) => line(name, name, this.layout.shows(name))),
      element("p", { class: "note" }, "Answers"),
      ...(this.results?.head?.columns ?? []).map((column) =>
        line(answersName(column), columnWords(column), this.layout.showsAnswers(column)),
      ),
    );
  }

  /**
   * What a column ran with, and what that came to.
   *
   * @param {GridColumn} column
   */
  head(column) {
    const { run } = this.state;
    const cell = run.facts.matrix?.cells.find(
      ({ target, prompt, variant }) =>
        target === column.target && prompt === column.prompt && variant === column.variant,
    );
    const alone = this.results.head.columns.length === 1;
    const of = cell ? rateOfGroup(cell.totals, run) : alone ? run.rates.run : null;
    const usage = cell?.usage;
    const { moved, taken } = comparedIn(run.facts.matrix, column);
    const facts = taken.length
      ? taken
      : [
          usage && usage.cost_per_answer_usd !== null ? `${money(usage.cost_per_answer_usd)} each` : null,
          usage && usage.latency_ms !== null ? `median ${duration(usage.latency_ms)}` : null,
        ].filter(Boolean);
    return [
      element(
        "span",
        { class: "gname" },
        column.prompt === null ? null : this.promptName(column.prompt),
        element("span", {}, inline([column.target, column.variant].filter(Boolean).join(" · "))),
      ),
      of
        ? element(
            "span",
            { class: "grate" },
            element("strong", {}, percent(of.rate)),
            element("span", { class: "small" }, ` ${[moved, unitWords(of)].filter(Boolean).join(" · ")}`),
          )
        : null,
      facts.length
        ? element(
            "span",
            { class: "small gtaken" },
            facts.map((one) => element("span", {}, one)),
          )
        : null,
    ];
  }

  /** The name of a prompt; a button that shows what the prompt says, where the run has that. @param {string} id */
  promptName(id) {
    const texts = this.state.run.facts.suites.flatMap((/** @type {any} */ { name, prompts }) =>
      (prompts ?? []).filter((one) => one.id === id && one.text).map(({ text }) => ({ suite: name, text })),
    );
    if (!texts.length) return element("span", { class: "gprompt" }, inline(id));
    const several = new Set(texts.map(({ text }) => text)).size > 1;
    const open = () =>
      this.openDialog(
        [inline(id), " · prompt"],
        (several ? texts : texts.slice(0, 1)).flatMap(({ suite, text }) => [
          several ? element("h3", {}, inline(suite)) : null,
          longText(text),
        ]),
      );
    return button(inline(id), open, { class: "gprompt", title: "Show the prompt" });
  }

  /** @returns {HTMLElement} what the dialog holds below its title */
  openDialog(title, content = []) {
    const close = button("Close", () => this.dialog.close(), { class: "quiet" });
    const body = element("div", { class: "gbody" }, content);
    this.dialog.replaceChildren(
      element("div", { class: "gtop" }, element("h2", { id: "gfull-title" }, title), close),
      body,
    );
    if (!this.dialog.open) this.dialog.showModal();
    return body;
  }

  /**
   * All of a text: of an answer with its verdict, or of a variable.
   *
   * @param {GridRow} row
   * @param {GridCell | null} cell
   * @param {string | null} name
   */
  async openText(row, cell, name) {
    const column = cell && this.results.head.columns[cell.column];
    const body = this.openDialog([inline(row.id), " · ", inline(column ? columnWords(column) : name)]);
    try {
      const told = await this.state.source.whole({ run_id: this.state.source.id, ...asTrial(cell ?? row.cells[0]) });
      if (!cell) return body.append(longText(this.layout.isVariable(name) ? variablesOf(told)[name] : askedIn(told)));
      body.append(
        element(
          "p",
          { class: "outcome" },
          badge(cell.status),
          cell.why ? element("span", {}, inline(cell.why)) : null,
          element("a", { href: this.state.address(cell), click: () => this.dialog.close() }, "Open the case"),
        ),
        told.output === undefined ? element("p", { class: "note" }, "There is no answer.") : saidText(told.output),
        ...this.rated(row, cell),
      );
    } catch (problem) {
      body.append(problemBox(problem, null));
    }
  }

  /** What people think of an answer, and where one says so oneself. */
  rated(row, cell) {
    if (!this.ratings || !cell.output_sha256) return [];
    const given = this.ratings.of(row, cell);
    const parts = [commentList(given)];
    if (this.ratings.mayRate) {
      const mine = this.ratings.mine(row, cell);
      this.comment = element("textarea", {
        rows: 3,
        maxlength: 10_000,
        "aria-label": "Your comment",
        placeholder: "Your comment",
      });
      this.comment.value = mine?.comment ?? "";
      const problem = element("p", { class: "warning", role: "alert", hidden: true });
      const save = button("Save comment", async () => {
        problem.textContent = await this.rate(cell, mine?.thumb ?? "", this.comment.value);
        problem.hidden = !problem.textContent;
        if (problem.hidden) this.dialog.close();
      });
      parts.push(element("div", { class: "gcomment" }, this.comment, save), problem);
    }
    return parts.filter(Boolean);
  }

  ratingOf(cell, row) {
    if (!this.ratings) return null;
    return ratingBar(this.ratings, row, cell, {
      thumb: (thumb) => this.rateBy(row, cell, thumb),
      comment: () => this.openComment(row, cell),
    });
  }

  async openComment(row, cell) {
    this.comment = null;
    await this.openText(row, cell, null);
    this.comment?.focus();
  }

  /** Rate an answer. Return why that failed; empty: it did not. */
  async rate(cell, thumb, comment) {
    try {
      await this.ratings.rate(cell, thumb, comment);
    } catch (problem) {
      return `Not saved: ${problem.message}`;
    }
    this.showRatings();
    return "";
  }

  /** Give an answer a thumb, or take it back, and keep the comment. */
  async rateBy(row, cell, thumb) {
    const mine = this.ratings.mine(row, cell);
    const problem = await this.rate(cell, mine?.thumb === thumb ? "" : thumb, mine?.comment ?? "");
    if (problem) this.told.textContent = problem;
  }

  /** @param {string} thumb */
  rateSelected(thumb) {
    const { row, cell } = this.grid.current();
    if (row && cell?.output_sha256 && this.ratings?.mayRate) this.rateBy(row, cell, thumb);
  }

  leave() {
    this.results?.stop();
    this.results = null;
  }

  keys() {
    const grid = this.grid;
    return {
      ArrowDown: () => grid.step(1, 0),
      ArrowUp: () => grid.step(-1, 0),
      ArrowLeft: () => grid.step(0, -1),
      ArrowRight: () => grid.step(0, 1),
      Home: () => grid.step(0, -Infinity),
      End: () => grid.step(0, Infinity),
      j: () => grid.step(1, 0),
      k: () => grid.step(-1, 0),
      " ": () => grid.openSelected(),
      Enter: () => this.openCase(),
      e: () => this.openCase("evidence"),
      1: () => this.rateSelected("up"),
      0: () => this.rateSelected("down"),
      c: () => {
        const { row, cell } = grid.current();
        if (row && cell) this.openComment(row, cell);
      },
      m: () => {
        switchMarkdown();
        grid.redraw();
      },
    };
  }

  openCase(does = "") {
    const { row, cell } = this.grid.current();
    const one = cell ?? row?.cells[0];
    if (!one) return;
    this.state.doesNext = does;
    location.hash = this.state.address(one);
  }
}
