// The list of cases: only the rows that can be seen are there, so that ten thousand cost what twenty do.

const ROW_HEIGHT = 58;
const BEYOND = 8;

class CaseList {
  constructor(address) {
    this.address = address;
    this.cases = [];
    this.selected = -1;
    this.rows = element("div", { class: "rows", role: "list", "aria-label": "Cases" });
    this.element = element("div", { class: "list", tabindex: 0, role: "group", "aria-label": "List of cases", scroll: () => this.later() }, this.rows);
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  show(cases, selected) {
    this.cases = cases;
    this.selected = selected;
    this.rows.style.height = `${Math.max(cases.length, 1) * ROW_HEIGHT}px`;
    this.draw();
  }

  select(number) {
    this.selected = number;
    const top = number * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (number >= 0 && (top < scrollTop || top + ROW_HEIGHT > scrollTop + clientHeight))
      this.element.scrollTop = top - clientHeight / 2 + ROW_HEIGHT / 2;
    this.draw();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_HEIGHT) - BEYOND);
    const last = Math.min(this.cases.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / ROW_HEIGHT) + BEYOND);
    const rows = [];
    for (let number = first; number < last; number += 1) rows.push(this.row(this.cases[number], number));
    if (!this.cases.length) rows.push(element("p", { class: "empty" }, "No case is like that."));
    this.rows.replaceChildren(...rows);
  }

  row(one, number) {
    const chosen = number === this.selected;
    const link = element(
      "a",
      { class: chosen ? "row chosen" : "row", href: this.address(one), "aria-current": chosen ? "true" : null },
      statusIcon(one.status),
      element("span", { class: "id" }, inline(one.id)),
      element("span", { class: "score" }, one.trials.length > 1 ? `${passedSamples(one)}/${one.trials.length}` : score(one.score)),
      element("span", { class: "under" }, marks(one), inline(underneath(one))),
    );
    const row = element("div", { role: "listitem", "aria-setsize": this.cases.length, "aria-posinset": number + 1 }, link);
    row.style.transform = `translateY(${number * ROW_HEIGHT}px)`;
    return row;
  }
}

// What must be seen at once of a case: what changed, and that its samples disagree.
function marks(one) {
  const found = [];
  if (one.change && one.change !== "same") found.push(element("span", { class: `mark ${one.change}` }, CHANGES[one.change]));
  if (isFlaky(one)) found.push(element("span", { class: "mark flaky" }, "flaky"));
  return found;
}

function underneath(one) {
  const tables = one.trials[0].run.tables;
  const where = [
    tables.suites.length > 1 ? one.suite : null,
    tables.prompts.length > 1 ? one.prompt : null,
    tables.targets.length > 1 ? one.target : null,
    one.teaser,
  ];
  return where.filter(Boolean).join(" · ");
}
