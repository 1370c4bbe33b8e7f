// The runs of a suite on a target, and after which of them the results changed, in the words of `agentv trend`.

/** @import { Api } from "../data/api.js" */

import { count, percent } from "../data/numbers.js";
import { plainly, shortened } from "../data/texts.js";
import { drawing, element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { Loading } from "../page/loading.js";
import { openRow, stepRows } from "../page/rows.js";
import { trendDrawing } from "./trend_drawing.js";

const LAST_RUNS = ["10", "20", "50", "100", "1000"];
const USUAL_LAST = "20";
export class TrendScreen {
  /**
   * @param {Api} api
   * @param {(id: string) => string} runAddress
   */
  constructor(api, runAddress) {
    this.api = api;
    this.runAddress = runAddress;
    this.title = "Trend";
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.asked = null;
  }

  goTo(_, parameters) {
    const asked = {
      suite: parameters.get("suite") ?? "",
      last: parameters.get("last") ?? USUAL_LAST,
      measure: parameters.get("measure") ?? "pass_rate",
      target: parameters.get("target") ?? "",
    };
    if (JSON.stringify(asked) === JSON.stringify(this.asked)) return;
    this.asked = asked;
    this.loading.during(
      async (signal) => this.page(await this.api.get(["trend"], asked, signal)),
      () => this.main.querySelector("h1")?.focus(),
    );
  }

  page(found) {
    return element(
      "article",
      { class: "trends" },
      found.suites.length ? this.chooser(found) : null,
      found.data ? this.told(found) : noTrend(found),
    );
  }

  chooser({ suites, suite, targets, target }) {
    const shown = { suite, target };
    const choices = (name, label, values) => {
      const made = element(
        "select",
        { change: () => this.choose({ [name]: made.value }) },
        values.map(([value, words]) => element("option", { value }, words)),
      );
      made.value = shown[name] ?? this.asked[name];
      return element("label", {}, element("span", { class: "label" }, label), made);
    };
    const names = targets.includes(target) ? targets : [target, ...targets];
    const known = suites.includes(suite) ? suites : [suite, ...suites];
    const lasts = LAST_RUNS.includes(this.asked.last) ? LAST_RUNS : [this.asked.last, ...LAST_RUNS];
    return element(
      "div",
      { class: "panel chooser" },
      choices(
        "suite",
        "Suite",
        known.map((one) => [one, shortened(plainly(one))]),
      ),
      choices(
        "target",
        "Target",
        names.map((one) => [one, shortened(plainly(one))]),
      ),
      choices("measure", "Measure", [
        ["pass_rate", "Pass rate"],
        ["mean_score", "Mean score"],
      ]),
      choices(
        "last",
        "Runs",
        lasts.map((one) => [one, `last ${one}`]),
      ),
    );
  }

  choose(changes) {
    location.hash = this.address("suite" in changes ? { ...changes, target: "" } : changes);
  }

  address(changes) {
    return `#/trend?${new URLSearchParams({ ...this.asked, ...changes })}`;
  }

  told({ findings, notes, data }) {
    const [first, ...others] = findings;
    const said = (all) => all.map((line) => element("li", {}, inline(line)));
    return [
      element(
        "header",
        { class: "panel verdict" },
        element("h1", { tabindex: -1 }, inline(first)),
        data.runs.length > 1 ? trendDrawing(data) : null,
        others.length ? element("ul", {}, said(others)) : null,
        notes.length ? element("div", { class: "warning" }, element("ul", {}, said(notes))) : null,
      ),
      section(
        count(data.runs.length, "run"),
        element(
          "ol",
          { class: "panel looks" },
          data.runs.toReversed().map((run) => element("li", {}, this.row(run))),
        ),
      ),
    ];
  }

  row({ run_id: id, commit, value, interval, judged, total, change }) {
    const facts = [
      commit ? `commit ${commit.slice(0, 9)}` : null,
      interval ? `95% CI ${percent(interval[0])} to ${percent(interval[1])}` : null,
      `${judged.toLocaleString("en")} of ${count(total, "case")} judged`,
      change?.direction ? `${change.direction} than the run before` : null,
    ];
    return element(
      "a",
      { class: "look", href: this.runAddress(id) },
      drawing("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }),
      element("span", { class: "id" }, inline(id)),
      element("span", { class: "score" }, percent(value)),
      element("span", { class: "why" }, facts.filter(Boolean).join(" · ")),
    );
  }

  leavePage() {
    this.loading.stop();
  }

  keys() {
    return {
      j: () => stepRows(this.main, 1),
      k: () => stepRows(this.main, -1),
      Enter: () => openRow(this.main),
      Escape: () => {
        location.hash = "#/";
      },
    };
  }
}

function noTrend({ problem }) {
  return [
    element("h1", { tabindex: -1 }, "Trend"),
    element("p", { class: "panel note" }, inline(`${problem[0].toUpperCase()}${problem.slice(1)}`)),
  ];
}
