// The library of prompts: what status each has, and how its last exam ended.

/** @import { Api } from "../data/api.js" */

import { element } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";
import { Loading } from "../page/loading.js";
import { openRow, stepRows } from "../page/rows.js";

export function promptAddress(name) {
  return `#/prompts/${encodeURIComponent(name.toWellFormed())}`;
}

export class PromptsScreen {
  /** @param {Api} api */
  constructor(api) {
    this.title = "Prompts";
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.loading.during(
      async (signal) => libraryOf(await api.get(["prompts"], {}, signal)),
      () => this.main.querySelector("h1")?.focus(),
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

function libraryOf({ prompts, totals }) {
  return element(
    "article",
    { class: "prompts" },
    element("h1", { tabindex: -1 }, "Prompts"),
    element("p", { class: "note" }, totals),
    element(
      "ul",
      { class: "panel looks" },
      prompts.map((one) => element("li", {}, libraryRow(one))),
    ),
  );
}

function libraryRow(one) {
  const exam = one.passed === null ? "never examined" : `exam ${one.result}, ${one.when} UTC`;
  return element(
    "a",
    { class: "look", href: promptAddress(one.name) },
    statusIcon(one.passed === null ? "skipped" : one.passed ? "passed" : "failed"),
    element("span", { class: "id" }, inline(one.name)),
    promptStatus(one),
    element(
      "span",
      { class: "why" },
      exam,
      one.changed ? [" · ", one.facts.unreadable ? "" : "changed: ", inline(one.changed)] : null,
    ),
  );
}

/** The status of a prompt, also where its text changed since it got it. */
export function promptStatus({ words, facts }) {
  const kind = facts.edited ? "edited" : facts.status === "draft" ? "" : "better";
  return element("span", { class: `mark ${kind}` }, words);
}
