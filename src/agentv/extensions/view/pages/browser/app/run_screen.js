// One run of the server, shown as in a file, and live while it goes on.

/** @import { Api } from "../data/api.js" */
/** @import { News } from "../data/types.d.ts" */

import { ApiSource } from "../data/api_source.js";
import { moment } from "../data/numbers.js";
import { element } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { AnswerRatings } from "../grid/ratings.js";
import { judgeAddress } from "../judge/address.js";
import { labelAddress } from "../label/draw.js";
import { Loading } from "../page/loading.js";
import { placeLinks, RunPage, whatRan } from "../page/run_page.js";
import { runAgainBox } from "./run_again.js";
import { runAddress } from "./run_rows.js";

const REFRESH_MS = 250; // while a run goes on, numbers are read again no more often
const AFTER_FAILURE_MS = 3000;

export class RunScreen {
  /**
   * @param {Api} api
   * @param {any} frame
   * @param {string} id
   * @param {{ run: string, route: string } | null} beside
   * @param {{ offers: (name: string) => boolean, project: any }} app
   */
  constructor(api, frame, id, beside, app) {
    this.offers = (name) => app.offers(name);
    this.runAgain = app.project.run ? (trial) => runAgainBox(api, id, trial) : null;
    this.runFailed = app.project.run ? () => runAgainBox(api, id, null) : null;
    this.ratings = app.offers("rate") ? new AnswerRatings(api, id, app.project.label) : null;
    this.frame = frame;
    this.id = id;
    this.source = new ApiSource(api, id, beside);
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    /** @type {RunPage | null} */
    this.page = null;
    this.title = id;
    /** @type {[string, URLSearchParams] | null} */
    this.asked = null;
    this.opening = this.open();
  }

  open() {
    return this.loading.during(
      async (signal) => {
        const run = await this.source.overview(signal);
        const page = new RunPage(this.source, run, runAddress(this.id).slice(0, -1));
        this.page = page;
        return element("p", {}, "");
      },
      () => this.begin(),
    );
  }

  begin() {
    const { page } = this;
    this.main = page.main;
    this.frame.show(page.side, page.main);
    page.moved = () => this.frame.places.replaceChildren(...placeLinks(page));
    page.runAddress = runAddress;
    page.afterLabels = () => this.afterLabels();
    page.runAgain = this.runAgain;
    page.runFailed = this.runFailed;
    page.ratings = this.ratings;
    this.frame.subject.replaceChildren(...this.subject());
    if (this.asked) page.goTo(...this.asked);
    if (page.run.state === "running") this.ended = this.source.watch((news) => this.hear(news));
    if (page.run.indexed < 1) this.refresh();
  }

  subject() {
    const { run } = this.page;
    return [
      element("span", { class: "what" }, inline(whatRan(run))),
      inline(run.facts.name || run.facts.run_id),
      run.facts.started ? element("span", { class: "when" }, moment(run.facts.started)) : null,
    ].filter(Boolean);
  }

  // Where answers are labelled that a judge graded, and where that says how good it is.
  afterLabels() {
    const run = this.id;
    if (!this.page.run.summary?.judges?.length) return null;
    return element(
      "p",
      { class: "judgelinks" },
      this.offers("label") ? element("a", { href: labelAddress({ run }) }, "Label answers") : null,
      this.offers("judge") ? element("a", { href: judgeAddress({ run }) }, "Check the judge") : null,
    );
  }

  goTo(path, parameters) {
    this.asked = [path, parameters];
    this.page?.goTo(path, parameters);
  }

  /** @param {News} news */
  hear(news) {
    if (news.kind === "progress") {
      const { run } = this.page;
      this.page.update({ ...run, done: news.done ?? run.done, planned: news.planned ?? run.planned });
      if (news.cases?.some((one) => one.route === this.page.opened?.route)) this.page.draw();
    }
    if (news.kind === "state" && news.state !== "running") this.ended?.();
    this.refresh();
  }

  // At once, and again after some time for what came meanwhile.
  async refresh() {
    if (this.waiting) {
      this.again = true;
      return;
    }
    this.waiting = true;
    let pause = REFRESH_MS;
    this.source.refresh();
    try {
      this.page.update(await this.source.overview());
      this.again ||= this.page.run.indexed < 1;
    } catch (problem) {
      // The numbers that are there stay. Of a run that is gone there are no others.
      this.again = problem.status !== 404;
      pause = AFTER_FAILURE_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    this.waiting = false;
    if (this.again && !this.left) {
      this.again = false;
      this.refresh();
    }
  }

  leavePage() {
    this.left = true;
    this.ended?.();
    this.loading.stop();
    this.page?.leavePage();
  }

  keys() {
    if (!this.page) return { Escape: () => this.leave() };
    return { ...this.page.keys(), Escape: () => this.leave() };
  }

  leave() {
    if (!this.page?.leave()) location.hash = "#/";
  }
}
