// Answers of a run are labelled, one on each screen. What the judge said of them is never loaded here.

/** @import { Api } from "../data/api.js" */

import { count } from "../data/numbers.js";
import { button, element } from "../dom/elements.js";
import { switchMarkdown } from "../dom/markdown.js";
import { commandLine, inline } from "../dom/text.js";
import { judgeAddress } from "../judge/address.js";
import { unfocus } from "../page/frame.js";
import { Loading, problemBox } from "../page/loading.js";
import { answerPage } from "./answer.js";
import { LabelBar } from "./bar.js";
import { drawChooser } from "./chooser.js";
import { draftOf, keepDraft } from "./drafts.js";
import { drawIn, labelAddress } from "./draw.js";
import { choiceOf } from "./keys.js";

export const LOOK_MS = 300; // an answer that has just appeared was not read: what is pressed was meant for the one before

export class LabelScreen {
  /** @param {Api} api */
  constructor(api) {
    this.api = api;
    this.title = "Label";
    this.hidesRuns = true;
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.draw = null;
    this.queue = null;
    /** @type {LabelBar | null} */
    this.bar = null;
    this.busy = false;
    this.shownAt = 0;
  }

  goTo(_, parameters) {
    const [draw, at] = [drawIn(parameters), parameters.get("at") ?? ""];
    const same = JSON.stringify(draw) === JSON.stringify(this.draw);
    if (same && this.queue && at === (this.queue.answer?.id ?? "")) return;
    this.draw = draw;
    if (draw.run) this.open(at);
    else this.choose();
  }

  choose() {
    this.queue = null;
    this.loading.during((signal) => drawChooser(this.api, signal));
  }

  /**
   * @param {string} at the id of an answer; empty: the first without a label
   * @param {string} words what went wrong before
   */
  open(at, words = "") {
    this.busy = true;
    let found = null;
    this.loading.during(
      async (signal) => {
        found = await this.found(at, signal);
        return found.page;
      },
      () => this.shown(found, words),
    );
  }

  async found(at, signal) {
    try {
      return this.pageOf(await this.api.get(["labels", "queue"], { ...this.draw, at }, signal));
    } catch (problem) {
      if (problem.name === "AbortError" || !problem.status) throw problem;
      if (problem.code !== "no-such-answer" || !at) return { queue: null, bar: null, page: this.refused(problem) };
      return { ...(await this.found("", signal)), words: `${problem.message}.` };
    }
  }

  refused(problem) {
    if (problem.code !== "read-only" || !problem.message.includes("--label"))
      return problemBox(problem, () => this.open(""));
    return element(
      "article",
      {},
      element("h1", { tabindex: -1 }, "Labelling is not allowed"),
      element(
        "div",
        { class: "panel" },
        element("p", {}, "Whoever started this server did not allow answers to be labelled. To label them:"),
        commandLine("In a terminal", "agentv view --label"),
      ),
    );
  }

  pageOf(queue) {
    if (!queue.answer) return { queue, bar: null, page: this.end(queue) };
    const { id, given } = queue.answer;
    const actions = {
      say: (verdict) => this.say(verdict),
      back: () => this.move(queue.before),
      on: () => this.move(queue.after),
      typed: (note) => keepDraft(id, note),
    };
    const bar = new LabelBar(queue, actions, draftOf(id) ?? given?.note ?? "");
    return { queue, bar, page: answerPage(queue, bar.element) };
  }

  /**
   * What is on the screen now: the address says it, and reading goes on at its heading.
   *
   * @param {{ queue: any, bar: LabelBar | null, words?: string }} found
   */
  shown({ queue, bar, words = "" }, problem = "") {
    this.queue = queue;
    this.bar = bar;
    this.busy = false;
    this.shownAt = performance.now();
    if (queue) history.replaceState(null, "", labelAddress(this.draw, queue.answer?.id ?? ""));
    if (this.main.parentElement) this.main.parentElement.scrollTop = 0;
    scrollTo(0, 0);
    this.main.querySelector("h1").focus({ preventScroll: true });
    if (problem || words) this.bar?.fail(problem || words);
  }

  move(at) {
    if (at && !this.busy) this.open(at);
  }

  /** Save what the person says, and only then go on. */
  async say(verdict) {
    const { queue, bar } = this;
    if (this.busy || performance.now() - this.shownAt < LOOK_MS) return;
    const { id, given, case: name } = queue.answer;
    this.busy = true;
    bar.wait(true);
    const label = { ...this.draw, id, verdict, note: bar.note.value, replaces: given?.time ?? "" };
    try {
      const saved = await this.api.send("POST", ["labels"], label);
      keepDraft(id, null);
      if (this.queue !== queue) return;
      const next = this.pageOf(saved.next);
      this.loading.show(next.page);
      this.shown(next);
      this.bar?.tell(name, saved.given);
    } catch (problem) {
      if (this.queue === queue) this.notSaved(problem, verdict);
    }
  }

  notSaved(problem, verdict) {
    this.busy = false;
    this.bar.wait(false);
    const [first, ...rest] = problem.message;
    const words = `Not saved. ${first.toUpperCase()}${rest.join("").replace(/[.?!]$/, "")}.`;
    if (problem.status === 404 || problem.status === 409) this.open(this.queue.answer.id, words);
    else this.bar.fail(`${words} What you typed is kept.`, () => this.say(verdict));
  }

  end(queue) {
    const place = element("div", { class: "agreed" });
    const tell = button("Show how often you and the judge agree", () => this.agreement(place), { class: "primary" });
    place.append(
      element("p", { class: "note" }, "From then on your labels of these answers stay as they are."),
      element("p", {}, tell),
    );
    return element(
      "article",
      { class: "labelling" },
      element("h1", { tabindex: -1 }, `All ${count(queue.total, "answer")} are labelled`),
      element(
        "div",
        { class: "panel" },
        element(
          "p",
          {},
          "The labels of ",
          inline(queue.person),
          " are in ",
          queue.places.map((one) => [element("code", {}, inline(one)), " "]),
        ),
        place,
        queue.before
          ? element(
              "p",
              { class: "after" },
              button("Back to the last answer", () => this.move(queue.before), {
                class: "quiet",
                "aria-keyshortcuts": "b",
              }),
            )
          : null,
      ),
    );
  }

  async agreement(place) {
    try {
      const { agreed, of } = await this.api.send("POST", ["labels", "agreement"], this.draw);
      this.queue = { ...this.queue, before: "" };
      this.main.querySelector(".after")?.remove();
      place.replaceChildren(
        element("p", { role: "status" }, `You and the judge agree on ${agreed} of ${of}.`),
        element(
          "p",
          {},
          element("a", { class: "primary", href: judgeAddress(this.draw) }, "See how good the judge is"),
        ),
      );
    } catch (problem) {
      place.append(element("p", { class: "warning", role: "alert" }, problem.message));
    }
  }

  leavePage() {
    this.loading.stop();
    this.queue = null;
  }

  keys() {
    const { queue } = this;
    const keys = { Escape: () => this.leave(), Enter: unfocus, m: () => switchMarkdown() };
    if (!queue) return keys;
    keys.b = () => this.move(queue.before);
    if (!queue.answer) return keys;
    keys.n = keys.c = () => this.bar.startNote();
    if (queue.answer.given) keys.j = () => this.move(queue.after);
    for (const key of "01pfu") {
      const choice = choiceOf(key);
      if (choice) keys[key] = (event) => event.repeat || this.bar.choose(choice);
    }
    return keys;
  }

  leave() {
    if (document.activeElement?.matches("input, select")) unfocus();
    else location.hash = "#/";
  }
}
