// The page as a whole: where one is stands in the address, and everything follows from that.

import { casePage } from "./case/case.js";
import { matchRuns } from "./data/changes.js";
import { choiceFrom, choiceText, chosenCases, cleared, emptyChoice, isChosen } from "./data/choice.js";
import { elementsOf, Run } from "./data/file_run.js";
import { count, moment } from "./data/numbers.js";
import { CASE, caseAt, giveRoutes } from "./data/routes.js";
import { searchCases } from "./data/search.js";
import { plainly, shortened } from "./data/texts.js";
import { button, drawing, element } from "./dom/elements.js";
import { helpDialog, listenToKeys } from "./dom/keyboard.js";
import { switchMarkdown } from "./dom/markdown.js";
import { store, stored } from "./dom/storage.js";
import { inline } from "./dom/text.js";
import { Filters } from "./list/filters.js";
import { CaseList } from "./list/list.js";
import { missingPage } from "./run/missing.js";
import { overview } from "./run/overview.js";

const PHONE = matchMedia("(max-width: 860px)");
const PAGES = ["", "#/", "#/cases"];
const THEMES = ["system", "light", "dark"];

class Page {
  constructor(runs, comparison) {
    this.run = runs[0];
    this.base = runs[1] ?? null;
    this.comparison = comparison;
    this.gone = this.base ? matchRuns(this.run, this.base) : [];
    this.routes = giveRoutes(this.run.cases);
    this.choice = emptyChoice();
    this.found = [];
    this.list = new CaseList((one) => this.address(one));
    this.filters = new Filters(this.run, this.base, (choice) => this.choose(choice));
    this.main = element("main", { id: "main" });
    this.help = helpDialog();
    this.themeButton = button("", () => this.nextTheme(), { class: "quiet" });
    this.frame();
    addEventListener("hashchange", () => this.follow());
    listenToKeys(this.keys());
    this.theme(stored("theme") ?? "system");
    this.follow();
  }

  frame() {
    const { facts } = this.run;
    const header = element(
      "header",
      { class: "top" },
      element("a", { class: "brand", href: "#/" }, mark(), "agentv"),
      element(
        "span",
        { class: "runid" },
        element("span", { class: "what" }, inline(whatRan(this.run))),
        inline(facts.run_id),
        facts.started ? element("span", { class: "when" }, moment(facts.started)) : null,
        this.base ? element("span", { class: "against" }, "against ", inline(this.base.facts.run_id)) : null,
      ),
      element(
        "nav",
        { "aria-label": "Pages" },
        element("a", { href: "#/", "data-page": "overview" }, "Overview"),
        element("a", { href: "#/cases", "data-page": "cases" }, "Cases"),
      ),
      this.themeButton,
      button("?", () => this.help.showModal(), { class: "quiet", "aria-label": "Keys" }),
    );
    const side = element("aside", { class: "side", "aria-label": "Cases" }, this.filters.element, this.list.element);
    const skip = element(
      "a",
      {
        class: "skip",
        href: "#/",
        click: (event) => {
          event.preventDefault();
          this.focus();
        },
      },
      "Skip to the page",
    );
    document
      .getElementById("page")
      .replaceChildren(skip, header, element("div", { class: "body" }, side, this.main), this.help);
  }

  // Addresses: the overview, a case, and a choice of cases.
  withChoice(path, choice = this.choice, more = "") {
    const query = [choiceText(choice), more].filter(Boolean).join("&");
    return query ? `${path}?${query}` : path;
  }

  home() {
    return this.withChoice("#/");
  }

  address(one, sample = null) {
    return this.withChoice(`${CASE}${one.route}`, this.choice, sample === null ? "" : `sample=${sample}`);
  }

  chosen(changes) {
    return this.withChoice("#/cases", { ...cleared(this.choice), ...changes });
  }

  choose(choice) {
    const path = location.hash.split("?")[0] || "#/";
    location.replace(this.withChoice(path, choice));
    this.follow(); // at once; the event comes later, and then finds nothing to do
  }

  follow() {
    const [path, query = ""] = location.hash.split("?");
    const parameters = new URLSearchParams(query);
    const choice = choiceFrom(parameters);
    const one = caseAt(this.routes, path);
    const samePage = this.drawn && path === this.path && Number(parameters.get("sample")) === this.sample;
    const sameChoice = this.path !== undefined && choiceText(choice) === choiceText(this.choice);
    this.path = path;
    this.sample = Number(parameters.get("sample"));
    this.opened = one;
    if (!sameChoice) this.search(choice);
    this.lost = !one && !PAGES.includes(path);
    document.body.dataset.page = one || this.lost ? "case" : path === "#/cases" ? "cases" : "overview";
    this.mark();
    this.list.select(one ? this.found.indexOf(one) : this.list.selected);
    if (!samePage) this.draw();
  }

  draw() {
    const page = this.lost
      ? missingPage(this)
      : this.opened
        ? casePage(this, this.opened, this.sample)
        : overview(this);
    this.main.replaceChildren(page);
    this.main.scrollTop = 0;
    if (PHONE.matches) scrollTo(0, 0);
    const names = [
      this.lost ? "not in this report" : this.opened?.id,
      this.run.tables.suites.join(", "),
      this.run.facts.run_id,
      "agentv",
    ];
    document.title = names
      .filter(Boolean)
      .map((name) => shortened(plainly(name)))
      .join(" · ");
    if (this.drawn && !document.activeElement?.matches("input")) this.focus();
    this.drawn = true;
  }

  focus() {
    this.main.querySelector("h1")?.focus({ preventScroll: true });
  }

  mark() {
    for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("nav [data-page]"))) {
      const { page } = document.body.dataset;
      const here = PHONE.matches && page !== "overview" ? "cases" : this.opened || this.lost ? "case" : "overview";
      if (link.dataset.page === here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      link.setAttribute("href", this.withChoice(link.dataset.page === "cases" ? "#/cases" : "#/"));
    }
  }

  // Cases by the filters at once, by text as they are found.
  search(choice) {
    this.stop?.();
    this.choice = choice;
    this.filters.show(choice);
    const cases = chosenCases(this.run, choice);
    const show = (found, ended) => {
      this.found = found;
      this.list.show(found, found.indexOf(this.opened));
      this.filters.tell(found, !ended);
    };
    this.list.element.scrollTop = 0;
    if (choice.q) this.stop = searchCases(cases, choice.q, show);
    else show(cases, true);
  }

  step(by) {
    if (!this.found.length) return;
    const from = this.opened ? this.found.indexOf(this.opened) : this.list.selected;
    const next = Math.min(this.found.length - 1, Math.max(0, from + by));
    if (this.opened) location.hash = this.address(this.found[next]);
    this.list.select(next);
  }

  stepSample(by) {
    const trials = this.opened?.trials ?? [];
    const place = trials.findIndex((trial) => trial.sample === this.sample);
    const next = trials[Math.max(0, place) + by];
    if (next) location.hash = this.address(this.opened, next.sample);
  }

  open() {
    const one = this.found[Math.max(0, this.list.selected)];
    if (one) location.hash = this.address(one);
    unfocus();
  }

  leave() {
    const active = document.activeElement;
    if (active?.matches("input, select")) unfocus();
    else if (this.opened || this.lost) location.hash = PHONE.matches ? this.withChoice("#/cases") : this.home();
    else if (isChosen(this.choice)) this.choose(cleared(this.choice));
    else location.hash = "#/";
  }

  keys() {
    return {
      "/": () => {
        if (PHONE.matches && document.body.dataset.page !== "cases") location.hash = this.withChoice("#/cases");
        this.filters.search.focus();
        this.filters.search.select();
      },
      j: () => this.step(1),
      k: () => this.step(-1),
      "[": () => this.stepSample(-1),
      "]": () => this.stepSample(1),
      Enter: () => this.open(),
      Escape: () => this.leave(),
      t: () => this.nextTheme(),
      m: () => switchMarkdown(),
      "?": () => this.help.showModal(),
    };
  }

  nextTheme() {
    this.theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
  }

  theme(name) {
    document.documentElement.dataset.theme = THEMES.includes(name) ? name : "system";
    this.themeButton.textContent = { system: "◐", light: "○", dark: "●" }[document.documentElement.dataset.theme];
    this.themeButton.setAttribute("aria-label", `Colours: ${document.documentElement.dataset.theme}`);
    this.themeButton.title = `Colours: ${document.documentElement.dataset.theme} (t)`;
    store("theme", name);
  }
}

// Suites and targets in a few words.
function whatRan({ tables }) {
  const few = (names, what) =>
    names.length > 2 ? count(names.length, what) : names.map((name) => shortened(name, 40)).join(", ");
  return [few(tables.suites, "suite"), few(tables.targets, "target")].filter(Boolean).join(" · ");
}

function mark() {
  return drawing(
    "svg",
    { viewBox: "0 0 24 24", class: "logo", "aria-hidden": "true" },
    drawing("rect", { width: 24, height: 24, rx: 6 }),
    drawing("path", { d: "M6 12.5 10.2 16.5 18 7.5" }),
  );
}

function unfocus() {
  const active = document.activeElement;
  if (active instanceof HTMLElement) active.blur();
}

/** @returns {NodeListOf<HTMLDetailsElement>} */
function detailsIn(selector) {
  return document.querySelectorAll(selector);
}

// What is folded is opened on paper.
addEventListener("beforeprint", () => {
  for (const one of detailsIn("main details:not([open])")) {
    one.open = true;
    one.dataset.folded = "";
    one.dispatchEvent(new Event("toggle"));
  }
});

addEventListener("afterprint", () => {
  for (const one of detailsIn("main details[data-folded]")) {
    one.open = false;
    delete one.dataset.folded;
  }
});

const compared = elementsOf("comparison", 0)[0];
new Page(
  JSON.parse(elementsOf("runs", 0)[0].textContent).map((facts_, number) => new Run(number, facts_)),
  compared ? JSON.parse(compared.textContent) : null,
);
document.documentElement.dataset.ready = "";
