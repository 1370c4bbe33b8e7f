// How the results of a suite moved over its runs, in the words of `agentv trend`.

/** @import { Api } from "../data/api.js" */

import { count, percent } from "../data/numbers.js";
import { plainly, shortened } from "../data/texts.js";
import { drawing, element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { Loading } from "../page/loading.js";
import { openRow, stepRows } from "../page/rows.js";
import { MOST_TARGETS, trendDrawing } from "./trend_drawing.js";

const LAST_RUNS = ["10", "20", "50", "100", "1000"];
const USUAL_LAST = "20";
const DIRECTION_TITLES = {
  rises: "It rises",
  falls: "It falls",
  "no trend is shown": "No trend is shown",
  "too few runs": "Too few runs for a trend",
};

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

  chooser({ suites, suite, targets }) {
    const choices = (name, label, values) => {
      const made = element(
        "select",
        { change: () => this.choose({ [name]: made.value }) },
        values.map(([value, words]) => element("option", { value }, words)),
      );
      made.value = name === "suite" ? suite : this.asked[name];
      return element("label", {}, element("span", { class: "label" }, label), made);
    };
    const { target } = this.asked;
    const there = (targets ?? []).map((one) => one.target);
    const names = target && !there.includes(target) ? [target, ...there] : there;
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
      names.length
        ? choices("target", "Target", [["", "All together"], ...names.map((one) => [one, shortened(plainly(one))])])
        : null,
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

  told({ findings, notes, data, targets }) {
    const said = (all) => all.map((line) => element("li", {}, inline(line)));
    const lines = this.asked.target || !targets || targets.length > MOST_TARGETS ? [] : targets;
    return [
      element(
        "header",
        { class: "panel verdict" },
        element("h1", { tabindex: -1 }, DIRECTION_TITLES[data.direction] ?? data.direction),
        data.runs.length > 1 ? trendDrawing(data, lines) : null,
        data.runs.length > 1 && lines.length ? this.legend(lines) : null,
        element("ul", {}, said(findings)),
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

  // Which line is which target; each leads to the trend of that target alone.
  legend(lines) {
    return element(
      "ul",
      { class: "legend", "aria-label": "Targets" },
      lines.map(({ target }, number) =>
        element(
          "li",
          {},
          drawing(
            "svg",
            { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
            drawing("line", { class: `targetline target${number}`, x1: 0, x2: 16, y1: 8, y2: 8 }),
          ),
          element("a", { href: this.address({ target }) }, inline(target)),
        ),
      ),
    );
  }

  row({ run_id: id, value, interval, judged, total }) {
    const [low, high] = interval ?? [];
    const sure = interval ? `95% CI ${percent(low)} to ${percent(high)} · ` : "";
    return element(
      "a",
      { class: "look", href: this.runAddress(id) },
      drawing("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }),
      element("span", { class: "id" }, inline(id)),
      element("span", { class: "score" }, percent(value)),
      element("span", { class: "why" }, `${sure}${judged.toLocaleString("en")} of ${count(total, "case")} judged`),
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
