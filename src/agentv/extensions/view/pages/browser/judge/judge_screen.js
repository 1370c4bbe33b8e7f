// How well judges agree with people: what `agentv judge check` prints.

/** @import { Api } from "../data/api.js" */

import { runWords } from "../app/run_rows.js";
import { element } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { LISTED_RUNS } from "../label/chooser.js";
import { labelAddress } from "../label/draw.js";
import { Loading, problemBox } from "../page/loading.js";
import { judgeAddress } from "./address.js";
import { checkedJudge } from "./checked.js";

export class JudgeScreen {
  /**
   * @param {Api} api
   * @param {any} project
   */
  constructor(api, project) {
    this.api = api;
    this.canLabel = (project.offers ?? []).includes("label");
    this.title = "Judge";
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.asked = null;
  }

  goTo(_, parameters) {
    const asked = { run: parameters.get("run") ?? "", assertion: parameters.get("assertion") ?? "" };
    if (JSON.stringify(asked) === JSON.stringify(this.asked)) return;
    this.asked = asked;
    this.loading.during(
      (signal) => this.page(asked, signal),
      () => this.main.querySelector("h1")?.focus(),
    );
  }

  async page(asked, signal) {
    const listed = this.api.get(["runs"], { limit: LISTED_RUNS }, signal);
    const told = await this.told(asked, signal);
    const judges = told.judges ?? [];
    return element(
      "article",
      { class: "judges" },
      element("h1", { tabindex: -1 }, asked.run ? "Judges of a run" : "Judges, by all labels"),
      this.chooser(asked, (await listed).runs),
      told.problem ? this.without(told.problem, asked) : null,
      asked.assertion
        ? element("p", { class: "note" }, element("a", { href: judgeAddress({ run: asked.run }) }, "All assertions"))
        : null,
      judges.map((one) => checkedJudge(one, told, { single: judges.length === 1, canLabel: this.canLabel })),
      changed(told.changed_labels ?? []),
    );
  }

  async told(asked, signal) {
    try {
      return await this.api.get(["judges"], asked, signal);
    } catch (problem) {
      if (problem.name === "AbortError" || problem.status === 0) throw problem;
      return { problem };
    }
  }

  without(problem, { run, assertion }) {
    if (problem.code !== "no-labels") {
      const box = problemBox(problem, null);
      box.querySelector("h1").remove();
      return box;
    }
    return element(
      "div",
      { class: "panel nothing" },
      element("h2", {}, "No labels yet"),
      element("p", {}, "Label some answers, and this page says how often the judge is wrong."),
      this.canLabel
        ? element("p", {}, element("a", { class: "primary", href: labelAddress({ run, assertion }) }, "Label answers"))
        : null,
    );
  }

  chooser({ run }, runs) {
    const known = !run || runs.some(({ run_id: id }) => id === run) ? runs : [{ run_id: run, suites: [] }, ...runs];
    const made = element(
      "select",
      { change: () => this.choose(made.value) },
      element("option", { value: "" }, "All labels"),
      known.map((one) => element("option", { value: one.run_id }, runWords(one))),
    );
    made.value = run;
    return element(
      "div",
      { class: "panel judgechooser" },
      element("label", {}, element("span", { class: "label" }, "Run"), made),
      run && this.canLabel
        ? element("a", { class: "quietlink", href: labelAddress({ run }) }, "Label answers of it")
        : null,
    );
  }

  choose(run) {
    location.hash = judgeAddress({ run });
  }

  leavePage() {
    this.loading.stop();
  }

  keys() {
    return {
      Escape: () => {
        location.hash = "#/";
      },
    };
  }
}

function changed(labels) {
  if (!labels.length) return null;
  return element(
    "section",
    {},
    element("h2", {}, "Changed labels"),
    element("p", { class: "note" }, "The same person said something else before; the later label counts."),
    element(
      "ul",
      { class: "panel" },
      labels.map((one) => element("li", {}, inline(one.person), " on ", inline(one.case), `: ${one.label}`)),
    ),
  );
}
