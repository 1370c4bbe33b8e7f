// Every answer of a run: a row for each case, a column for each prompt, target and variant. Only the rows that can be seen
// are there, so that a hundred thousand cost what ten do.

/** @import { GridCell, GridColumn, GridResults, GridRow } from "../data/types.d.ts" */

import { isChosenView } from "../dom/answer_view.js";
import { button, element, hidden } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { answerCell, gridText } from "./cell.js";

const AROUND = 3;
const MOST_PIXELS = 15_000_000; // pixels: browsers lay out nothing that is much taller
const LOOKED_AT = 100; // rows whose variables are offered
const WIDE = { first: 136, variable: 190, answer: 250 };
const NARROW = { first: 84, variable: 130, answer: 210 };
const ON_PHONES = matchMedia("(max-width: 560px)");

export class AnswerGrid {
  /**
   * @param {import("./layout.js").GridLayout} layout
   * @param {{
   *   address: (cell: GridCell) => string,
   *   open: (row: GridRow, cell: GridCell | null, name: string | null) => void,
   *   filter: (name: string) => Node | null,
   *   home: (row: GridRow) => string | null,
   *   head: (column: GridColumn) => Node[],
   *   foot: (cell: GridCell, row: GridRow) => Node | null,
   *   met: () => void,
   * }} page
   */
  constructor(layout, page) {
    this.layout = layout;
    this.page = page;
    /** @type {GridResults | null} */
    this.results = null;
    this.selected = { row: 0, column: 0 };
    /** @type {Map<number, { of: GridRow | undefined, made: HTMLElement }>} */
    this.drawn = new Map();
    this.head = element("div", { class: "ghrow", role: "row", "aria-rowindex": 1 });
    this.rows = element("div", { class: "growbox", role: "rowgroup" });
    this.told = element("div", { class: "empty", hidden: true });
    this.element = element(
      "div",
      {
        class: "grid",
        role: "grid",
        tabindex: 0,
        "aria-label": "Answers",
        scroll: () => this.later(),
        click: (event) => this.click(event),
      },
      element("div", { class: "gheads", role: "rowgroup" }, this.head),
      this.rows,
      this.told,
    );
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  /** @param {GridResults} results */
  show(results) {
    this.results = results;
    this.element.scrollTop = 0;
    this.selected = { row: 0, column: this.selected.column };
    this.redraw();
  }

  /** Rows arrived, or went. */
  refresh() {
    this.meetRows();
    for (const [number, row] of this.drawn)
      if (row.of !== this.results.at(number)) {
        row.made.remove();
        this.drawn.delete(number);
      }
    if (this.columnsChanged()) this.redraw();
    else this.draw();
    this.tell();
  }

  meetRows() {
    for (let place = 0; place < LOOKED_AT; place += 1) {
      const row = this.results.at(place);
      if (row) this.layout.meet(row);
    }
    this.page.met();
  }

  columnsChanged() {
    const columns = JSON.stringify([this.results.head?.columns, this.layout.shown]);
    const changed = columns !== this.columnsDrawn;
    this.columnsDrawn = columns;
    return changed;
  }

  tell() {
    const { problem, total, searching } = this.results;
    this.told.hidden = Boolean(total || searching) && !problem;
    this.told.replaceChildren(
      ...(problem
        ? [
            element("p", { role: "alert" }, problem.message),
            button("Try again", () => this.results.retry(), { class: "quiet" }),
          ]
        : [element("p", {}, "No cases match.")]),
    );
  }

  /** Draw the heads that are others by now; a filter that somebody types in stays. */
  drawHeads() {
    const heads = (this.columns ?? []).map(({ title }, place) =>
      element("div", { class: "gh", role: "columnheader", "aria-colindex": place + 1 }, title()),
    );
    for (const old of [...this.head.children].slice(heads.length)) old.remove();
    for (const [place, made] of heads.entries()) {
      const old = this.head.children[place];
      const held = old?.contains(document.activeElement);
      if (!old) this.head.append(made);
      else if (!old.isEqualNode(made)) old.replaceWith(made);
      if (held && made.isConnected) made.querySelector("input")?.focus();
    }
  }

  /** Draw everything: the columns or the heights are others. */
  redraw() {
    if (!this.results) return;
    this.meetRows();
    this.columnsChanged();
    this.columns = this.columnsOf();
    const widths = this.columns.map(({ width, grows }) => (grows ? `minmax(${width}px, 1fr)` : `${width}px`));
    const least = this.columns.reduce((total, { width }) => total + width, 0);
    this.element.style.setProperty("--columns", widths.join(" "));
    this.element.style.setProperty("--least", `${least}px`);
    this.element.style.setProperty("--lines", String(this.layout.lines));
    this.element.style.setProperty("--height", `${this.layout.height}px`);
    this.element.classList.toggle("heat", this.layout.heat);
    this.element.classList.toggle("compact", this.layout.lines === 1);
    this.element.setAttribute("aria-colcount", String(this.columns.length));
    this.drawHeads();
    for (const { made } of this.drawn.values()) made.remove();
    this.drawn.clear();
    this.draw();
    this.tell();
  }

  /** The case, its variables, then its answers. */
  columnsOf() {
    const widths = ON_PHONES.matches ? NARROW : WIDE;
    const variable = (name) => ({
      name,
      width: widths.variable,
      grows: false,
      title: () => [element("span", { class: "gname" }, inline(name)), this.page.filter(name)],
      cell: (/** @type {GridRow} */ row) => ({
        content: [gridText(textIn(row, name) ?? { text: "", length: 0 }, this.layout.lines)],
      }),
    });
    const answers = (column, place) => ({
      name: null,
      width: widths.answer,
      grows: true,
      title: () => this.page.head(column),
      cell: (/** @type {GridRow} */ row) => this.answerIn(row, place),
    });
    const all = this.results.head?.columns ?? [];
    return [
      {
        name: "",
        width: widths.first,
        grows: false,
        title: () => [element("span", { class: "gname" }, "Case")],
        cell: (/** @type {GridRow} */ row) => ({ content: this.caseIn(row) }),
      },
      ...this.layout.shown.map(variable),
      ...all.flatMap((column, place) => (this.layout.showsAnswers(column) ? [answers(column, place)] : [])),
    ];
  }

  caseIn(row) {
    const first = row.cells[0];
    const home = this.page.home(row);
    return [
      first
        ? element("a", { class: "gid", href: this.page.address(first) }, inline(row.id))
        : element("span", { class: "gid" }, inline(row.id)),
      home ? element("p", { class: "gnote" }, inline(home)) : null,
      row.description ? element("p", { class: "gnote" }, inline(row.description)) : null,
      row.tags.length
        ? element(
            "p",
            { class: "gnote" },
            row.tags.map((tag) => element("span", { class: "tag" }, inline(tag))),
          )
        : null,
    ];
  }

  answerIn(row, place) {
    const cell = row.cells.find(({ column }) => column === place);
    if (!cell) return { content: [element("p", { class: "gtext none" }, "did not run")] };
    const how = { markdown: isChosenView("markdown"), lines: this.layout.lines };
    return { cell, content: [...answerCell(cell, how), this.page.foot(cell, row)] };
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // Where there are more rows than a browser lays out, the bar moves faster than they do.
  place() {
    const { total } = this.results;
    const { height } = this.layout;
    const { scrollTop, clientHeight } = this.element;
    const view = Math.max(height, clientHeight - this.head.offsetHeight);
    const whole = total * height;
    const bar = Math.min(whole, MOST_PIXELS);
    const top = bar > view ? (scrollTop * (whole - view)) / (bar - view) : scrollTop;
    return { top, view, bar, shift: scrollTop - top };
  }

  draw() {
    if (!this.results || !this.columns) return;
    const { total } = this.results;
    const { height } = this.layout;
    const { top, view, bar, shift } = this.place();
    this.rows.style.height = `${Math.max(bar, 1)}px`;
    this.element.setAttribute("aria-rowcount", String(total + 1));
    const first = Math.max(0, Math.floor(top / height) - AROUND);
    const last = Math.min(total, Math.ceil((top + view) / height) + AROUND);
    this.results.need(first, Math.max(last, AROUND));
    for (const [number, row] of this.drawn)
      if (number < first || number >= last) {
        row.made.remove();
        this.drawn.delete(number);
      }
    for (let number = first; number < last; number += 1) {
      const of = this.results.at(number);
      let row = this.drawn.get(number);
      if (!row || row.of !== of) {
        row?.made.remove();
        row = { of, made: this.row(of, number) };
        this.drawn.set(number, row);
        this.rows.append(row.made);
      }
      row.made.style.transform = `translateY(${number * height + shift}px)`;
    }
    this.mark();
  }

  row(of, number) {
    const made = element("div", { class: "grow", role: "row", "aria-rowindex": number + 2, "data-row": number });
    if (of) made.append(...this.columns.map((column, place) => this.cell(column, of, number, place)));
    else made.append(element("div", { role: "gridcell" }, hidden("loading")));
    return made;
  }

  cell(column, row, number, place) {
    const { content, cell = null } = column.cell(row);
    const hasScore = (cell?.score ?? null) !== null;
    const made = element(
      "div",
      {
        class: `gcell${cell ? ` answer ${cell.status}` : ""}${hasScore ? " scored" : ""}`,
        role: place ? "gridcell" : "rowheader",
        id: `cell-${number}-${place}`,
        "aria-colindex": place + 1,
        "data-column": place,
      },
      content,
    );
    if (hasScore) made.style.setProperty("--score", String(cell.score));
    return made;
  }

  mark() {
    this.element.querySelector(".gcell.chosen")?.classList.remove("chosen");
    const id = `cell-${this.selected.row}-${this.selected.column}`;
    const found = document.getElementById(id);
    found?.classList.add("chosen");
    if (found) this.element.setAttribute("aria-activedescendant", id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** @param {number} down @param {number} right */
  step(down, right) {
    const { row, column } = this.selected;
    this.select(row + down, column + right);
  }

  select(row, column) {
    this.selected = {
      row: Math.min(Math.max(0, row), Math.max(0, this.results.total - 1)),
      column: Math.min(Math.max(0, column), Math.max(0, this.columns.length - 1)),
    };
    const { height } = this.layout;
    const { top, view } = this.place();
    const wanted = this.selected.row * height;
    if (wanted < top) this.element.scrollTop += wanted - top;
    else if (wanted + height > top + view) this.element.scrollTop += wanted + height - top - view;
    this.draw();
    document
      .getElementById(`cell-${this.selected.row}-${this.selected.column}`)
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** The row and the cell that are selected. */
  current() {
    const row = this.results?.at(this.selected.row);
    const { name, cell } = this.columns?.[this.selected.column] ?? {};
    return { row, name, cell: row && cell ? (cell(row).cell ?? null) : null };
  }

  click(event) {
    if (event.target.closest("a, button, input")) return;
    const cell = event.target.closest(".gcell");
    const row = cell?.closest("[data-row]");
    if (!row || String(getSelection())) return;
    this.select(Number(row.dataset.row), Number(cell.dataset.column));
    this.openSelected();
  }

  /** Show all of the selected text. */
  openSelected() {
    const { row, cell, name } = this.current();
    if (row && (cell || name)) this.page.open(row, cell, name);
  }
}

/** A variable of a row, or its input. */
function textIn(row, name) {
  return Object.hasOwn(row.vars, name) ? row.vars[name] : name === "input" ? row.input : null;
}
