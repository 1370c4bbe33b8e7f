// The page of a run: the list of its cases with its filters, and beside it the overview or a case. Where one is stands in
// the address, and everything follows from that.

/** @import { Case, Choice, Overview, Results, Source } from "../data/types.d.ts" */

import { casePage } from "../case/case.js";
import { choiceFrom, choiceText, cleared, emptyChoice, isChosen } from "../data/choice.js";
import { count } from "../data/numbers.js";
import { namesIn, routeAsWritten } from "../data/routes.js";
import { plainly, shortened } from "../data/texts.js";
import { element } from "../dom/elements.js";
import { switchMarkdown } from "../dom/markdown.js";
import { AnswersPage } from "../grid/answers_page.js";
import { Filters } from "../list/filters.js";
import { CaseList } from "../list/list.js";
import { missingPage } from "../run/missing.js";
import { overview } from "../run/overview.js";
import { unfocus } from "./frame.js";
import { Loading } from "./loading.js";

export const PHONE = matchMedia("(max-width: 860px)");
const CASE = "/case/";
const ANSWERS = "/answers";
const PAGES = ["", "/", "/cases"];

export class RunPage {
  /**
   * @param {Source} source
   * @param {Overview} run
   * @param {string} root of its addresses: `#`, `#/run/ID`
   */
  constructor(source, run, root) {
    this.source = source;
    this.run = run;
    this.root = root;
    this.path = undefined;
    this.choice = emptyChoice();
    /** @type {Case | null} */
    this.opened = null;
    /** @type {(() => void) | null} */
    this.runAddress = null;
    /** @type {(() => Node | null) | null} */
    this.afterLabels = null; // links that stand under what labels say
    /** @type {((trial: any) => Node) | null} what runs a case again, where that is allowed */
    this.runAgain = null;
    /** @type {(() => Node | null) | null} what runs the failed cases again, where that is allowed */
    this.runFailed = null;
    /** @type {(() => void) | null} */
    this.refillTiles = null; // shows on the overview what the search finds
    this.moved = null; // called where the address leads elsewhere
    /** @type {AnswersPage | null} */
    this.answersPage = null;
    /** @type {import("../grid/ratings.js").AnswerRatings | null} where answers can have ratings */
    this.ratings = null;
    this.doesNext = ""; // what the next case that is opened does at once, by its `data-does`
    this.sample = 0;
    this.list = new CaseList((one) => this.address(one));
    this.filters = new Filters((choice) => this.choose(choice));
    this.filters.offer(run);
    this.main = element("main", { id: "main", tabindex: -1 });
    this.heading = element("h1", { class: "unseen" }, "Cases");
    this.side = element(
      "div",
      { class: "side", role: "complementary", "aria-label": "Cases" },
      this.filters.element,
      this.list.element,
    );
    this.loading = new Loading(this.main);
  }

  // Addresses: the overview, a case, and a choice of cases.
  withChoice(path, choice = this.choice, more = "") {
    const query = [choiceText(choice), more].filter(Boolean).join("&");
    return query ? `${path}?${query}` : path;
  }

  home() {
    return this.withChoice(`${this.root}/`);
  }

  cases() {
    return this.withChoice(`${this.root}/cases`);
  }

  answers(changes = {}) {
    return this.withChoice(`${this.root}${ANSWERS}`, { ...this.choice, ...changes });
  }

  address(one, sample = null) {
    return this.withChoice(`${this.root}${CASE}${one.route}`, this.choice, sample === null ? "" : `sample=${sample}`);
  }

  chosen(changes) {
    return this.withChoice(`${this.root}/cases`, { ...cleared(this.choice), ...changes });
  }

  choose(choice) {
    const path = location.hash.split("?")[0] || `${this.root}/`;
    location.replace(this.withChoice(path, choice));
    this.goTo(path.slice(this.root.length), new URLSearchParams(choiceText(choice))); // at once; the event finds nothing to do
  }

  /**
   * Follow an address.
   *
   * @param {string} path what stands after the root
   * @param {URLSearchParams} parameters
   */
  goTo(path, parameters) {
    const choice = choiceFrom(parameters);
    const sample = Number(parameters.get("sample"));
    const samePage = this.drawn && path === this.path && sample === this.sample;
    const sameChoice = this.path !== undefined && choiceText(choice) === choiceText(this.choice);
    this.path = path;
    this.sample = sample;
    this.route = path.startsWith(CASE) ? path.slice(CASE.length) : null;
    const overviewed = path === "/cases" ? "cases" : "overview";
    document.body.dataset.page = this.isAnswers() ? "answers" : this.isOverview() ? overviewed : "case";
    this.markMain();
    if (!sameChoice) this.search(choice);
    else if (!this.results && !this.isAnswers()) this.searchList();
    this.tellPlace();
    if (this.results) this.list.select(this.route === null ? this.list.selected : this.place());
    if (!samePage) this.draw();
  }

  // On a phone the list of cases is a page of its own.
  markMain() {
    const alone = PHONE.matches && document.body.dataset.page === "cases";
    this.side.setAttribute("role", alone ? "main" : "complementary");
    if (alone) this.side.prepend(this.heading);
    else this.heading.remove();
  }

  isAnswers() {
    return this.path === ANSWERS;
  }

  isOverview() {
    return PAGES.includes(this.path);
  }

  place() {
    return this.results?.placeOf(routeAsWritten(this.route ?? "")) ?? -1;
  }

  /** Where the page is, for whoever shows that. */
  tellPlace() {
    this.moved?.();
  }

  draw() {
    const first = !this.drawn;
    this.drawn = true;
    if (!this.isAnswers()) this.answersPage?.leave();
    if (this.isAnswers()) {
      this.opened = null;
      this.answersPage ??= new AnswersPage(this);
      this.loading.show(this.answersPage.element);
      this.answersPage.open();
      this.shown(first);
    } else if (this.isOverview()) {
      this.opened = null;
      this.loading.show(overview(this));
      this.shown(first);
    } else
      this.loading.during(
        (signal) => this.page(signal),
        () => {
          this.shown(first);
          if (this.doesNext) this.press(this.doesNext);
          this.doesNext = "";
        },
      );
  }

  /** @param {AbortSignal} signal */
  async page(signal) {
    const [route, sample] = [this.route, this.sample];
    const one = route === null ? null : await this.source.caseAt(route, signal);
    const names = route === null ? [] : namesIn(route);
    if (one === null) {
      this.opened = null;
      return missingPage(this, route, names.length ? await this.source.casesOf(names, signal) : []);
    }
    const page = await casePage(this, one, sample, signal);
    this.opened = one;
    return page;
  }

  shown(first) {
    this.main.scrollTop = 0;
    if (PHONE.matches) scrollTo(0, 0);
    const lost = this.route !== null && !this.opened ? `not in this ${this.source.kind}` : this.opened?.id;
    const names = [lost, this.run.tables.suites.join(", "), this.run.facts.run_id, "agentv"];
    document.title = names
      .filter(Boolean)
      .map((name) => shortened(plainly(name)))
      .join(" · ");
    if (!first && !document.activeElement?.matches("input"))
      this.main.querySelector("h1")?.focus({ preventScroll: true });
  }

  // Previous and next case of the list; unknown until the list has the case.
  steps(one) {
    const made = element("span", { class: "steps" });
    const fill = () => {
      const place = this.results?.placeOf(one.route) ?? -1;
      const step = (by, label, key) => {
        const next = place < 0 ? undefined : this.results.at(place + by);
        return next
          ? element("a", { class: "step", href: this.address(next), title: key }, label)
          : element("span", { class: "step off" }, label);
      };
      const where =
        place < 0 ? "" : `${(place + 1).toLocaleString("en")} of ${this.results.total.toLocaleString("en")}`;
      made.replaceChildren(
        ...(this.results?.total === 1 ? [] : [step(-1, "‹ Previous", "k"), where, step(1, "Next ›", "j")]),
      );
    };
    fill();
    this.refillSteps = fill;
    return made;
  }

  /**
   * Find the cases of a choice; they may arrive bit by bit.
   *
   * @param {Choice} choice
   */
  search(choice) {
    this.results?.stop();
    this.results = null;
    this.choice = choice;
    if (!this.isAnswers()) this.searchList();
    else if (this.answersPage?.results) this.answersPage.search();
  }

  searchList() {
    const { choice } = this;
    this.filters.show(choice);
    this.list.element.scrollTop = 0;
    /** @type {Results} */
    const results = this.source.find(choice, () => this.found(results));
    this.results = results;
    this.list.show(results, this.place());
    this.filters.tell(results);
    this.refillTiles?.();
  }

  found(results) {
    if (results !== this.results) return;
    this.list.refresh();
    if (this.route !== null && this.place() >= 0 && this.list.selected !== this.place()) this.list.select(this.place());
    this.filters.tell(results);
    this.refillSteps?.();
    this.refillTiles?.();
  }

  /** Show what is known of the run by now. */
  update(run) {
    this.run = run;
    this.filters.offer(run);
    if (this.results) this.filters.tell(this.results);
    this.answersPage?.update(run);
    if (!this.isOverview()) return;
    const top = this.main.scrollTop;
    const held = this.main.contains(document.activeElement) ? document.activeElement : null;
    const [focused, heading] = [held?.getAttribute("href"), held?.matches("h1")];
    this.loading.show(overview(this));
    this.main.scrollTop = top;
    if (heading) this.main.querySelector("h1")?.focus({ preventScroll: true });
    else if (focused)
      [...this.main.querySelectorAll("a")]
        .find((link) => link.getAttribute("href") === focused)
        ?.focus({ preventScroll: true });
  }

  leavePage() {
    this.results?.stop();
    this.answersPage?.leave();
    this.loading.stop();
  }

  step(by) {
    if (!this.results?.total) return;
    const from = this.route === null ? this.list.selected : this.place();
    const next = Math.min(this.results.total - 1, Math.max(0, from + by));
    const one = this.results.at(next);
    if (this.route !== null && one) location.hash = this.address(one);
    this.list.select(next);
  }

  stepSample(by) {
    const trials = this.opened?.trials ?? [];
    const place = trials.findIndex((trial) => trial.sample === this.sample);
    const next = trials[Math.max(0, place) + by];
    if (next) location.hash = this.address(this.opened, next.sample);
  }

  open() {
    const one = this.results?.at(Math.max(0, this.list.selected));
    if (one) location.hash = this.address(one);
    unfocus();
  }

  /** One step out; false if this is as far out as the page goes. */
  leave() {
    if (document.activeElement?.matches("input, select")) unfocus();
    else if (this.route !== null) location.hash = PHONE.matches ? this.cases() : this.home();
    else if (isChosen(this.choice)) this.choose(cleared(this.choice));
    else if (this.path === "/cases" || this.isAnswers()) location.hash = `${this.root}/`;
    else return false;
    return true;
  }

  /** Do what an element of the case that is shown does, by its `data-does`; where there are several, the next one. */
  press(what) {
    const found = this.opened ? [...this.main.querySelectorAll(`[data-does="${what}"]`)] : [];
    const at = found.indexOf(this.pressed);
    this.pressed = found[(at + 1) % found.length];
    this.pressed?.dispatchEvent(new Event("press"));
  }

  /** Whether there is something of the kind in the case that is shown. */
  has(what) {
    return Boolean(this.opened && this.main.querySelector(`[data-does="${what}"]`));
  }

  startSearch() {
    if (this.isAnswers()) {
      this.answersPage?.filters.search.focus();
      return;
    }
    if (PHONE.matches && document.body.dataset.page !== "cases") location.hash = this.cases();
    this.filters.search.focus();
    this.filters.search.select();
  }

  keys() {
    return {
      "/": () => this.startSearch(),
      j: () => this.step(1),
      k: () => this.step(-1),
      "[": () => this.stepSample(-1),
      "]": () => this.stepSample(1),
      Enter: () => this.open(),
      Escape: () => this.leave(),
      m: () => switchMarkdown(),
      e: () => this.press("evidence"),
      r: (event) => event.repeat || this.press("run"),
      ...(this.isAnswers() ? this.answersPage?.keys() : {}),
    };
  }
}

// Links to the overview and to the cases, marked where one is. On wide screens the cases are always there.
export function placeLinks(page) {
  const { page: place } = document.body.dataset;
  const listed = PHONE.matches && place !== "overview" ? "cases" : place === "case" ? "case" : "overview";
  const here = place === "answers" ? place : listed;
  const link = (name, label, href) =>
    element("a", { href, "data-page": name, "aria-current": name === here ? "page" : null }, label);
  return [
    link("overview", "Overview", page.home()),
    link("answers", "Answers", page.answers()),
    link("cases", "Cases", page.cases()),
  ];
}

// Suites and targets in a few words.
export function whatRan({ tables }) {
  const few = (names, what) =>
    names.length > 2 ? count(names.length, what) : names.map((name) => shortened(name, 40)).join(", ");
  return [few(tables.suites, "suite"), few(tables.targets, "target")].filter(Boolean).join(" · ");
}
