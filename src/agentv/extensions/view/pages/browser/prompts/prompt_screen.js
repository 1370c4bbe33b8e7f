// One prompt: its gates, its exam attempts, and its texts as they are and as they were examined.

/** @import { Api } from "../data/api.js" */

import { sideBySide } from "../case/answers.js";
import { count } from "../data/numbers.js";
import { plainly } from "../data/texts.js";
import { element, folded, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { commandLine, inline, longText } from "../dom/text.js";
import { Loading } from "../page/loading.js";
import { openRow, stepRows } from "../page/rows.js";
import { pairs } from "../run/about.js";
import { promptAddress, promptStatus } from "./prompts_screen.js";

const OPEN_TEXTS = 3;
const SHA_SHOWN = 12;

export class PromptScreen {
  /**
   * @param {Api} api
   * @param {string} name
   * @param {(id: string) => string} runAddress
   */
  constructor(api, name, runAddress) {
    this.api = api;
    this.name = name;
    this.runAddress = runAddress;
    this.title = plainly(name);
    this.main = element("main", { id: "main", class: "screen", tabindex: -1 });
    this.loading = new Loading(this.main);
    this.version = "";
    this.prompt = null;
    this.loading.during(
      async (signal) => {
        this.prompt = await api.get(["prompts", name], {}, signal);
        return this.page();
      },
      () => this.main.querySelector("h1")?.focus(),
    );
  }

  goTo(_, parameters) {
    const version = parameters.get("version") ?? "";
    if (version === this.version) return;
    this.version = version;
    this.texts?.replaceChildren(...this.versionTexts());
  }

  leavePage() {
    this.loading.stop();
  }

  page() {
    const { prompt } = this;
    this.texts = element("div", { class: "versions" }, this.versionTexts());
    return element(
      "article",
      { class: "prompt" },
      promptHead(prompt),
      promptGates(prompt),
      examAttempts(prompt, this.runAddress),
      section(`Texts: ${count(prompt.total_versions, "version")}`, this.texts),
    );
  }

  shown() {
    const { versions } = this.prompt;
    return versions.find(({ sha256 }) => this.version && sha256.startsWith(this.version)) ?? versions[0];
  }

  versionTexts() {
    const { prompt } = this;
    const shown = this.shown();
    if (!shown)
      return [element("p", { class: "panel note" }, "The exam cannot be read, so that its texts are not known.")];
    const now = prompt.versions.find((one) => one.current);
    const older = prompt.total_versions - prompt.versions.length;
    return [
      element(
        "nav",
        { class: "chips", "aria-label": "Versions" },
        prompt.versions.map((one) =>
          element(
            "a",
            { class: "sample", href: this.address(one), "aria-current": one === shown ? "true" : null },
            versionWords(one),
          ),
        ),
      ),
      older > 0 ? element("p", { class: "note" }, `${count(older, "older version")} not shown.`) : null,
      shown === now || !now ? null : missingTexts(shown, now),
      ...shown.texts.map((text, place) => this.textOf(text, place, shown === now ? null : now)),
    ].filter(Boolean);
  }

  // A text; of an earlier version beside how it is now.
  textOf({ path, sha256 }, place, now) {
    const text = this.prompt.texts[sha256];
    const later = now?.texts.find((one) => one.path === path);
    const same = later?.sha256 === sha256;
    const words = !now ? "" : same ? " (unchanged)" : later ? " (edited since)" : " (removed since)";
    const body = () => {
      if (text === undefined) return element("p", { class: "note" }, "This text is not stored here.");
      const after = later && this.prompt.texts[later.sha256];
      if (now && later && !same && after !== undefined) return sideBySide(text, after, ["As examined", "As it is now"]);
      return longText(text, { class: "code" });
    };
    return folded([inline(path), words], body, { class: "panel", open: place < OPEN_TEXTS && !same });
  }

  address({ sha256, current }) {
    const query = current ? "" : `?version=${sha256.slice(0, SHA_SHOWN)}`;
    return `${promptAddress(this.name)}${query}`;
  }

  stepVersion(by) {
    const versions = this.prompt?.versions ?? [];
    const next = versions[versions.indexOf(this.shown()) + by];
    if (next) location.hash = this.address(next);
  }

  keys() {
    return {
      j: () => stepRows(this.main, 1),
      k: () => stepRows(this.main, -1),
      "[": () => this.stepVersion(1),
      "]": () => this.stepVersion(-1),
      Enter: () => openRow(this.main),
      Escape: () => {
        location.hash = "#/prompts";
      },
    };
  }
}

function promptHead(prompt) {
  const { facts } = prompt;
  const should = facts.queries.filter((one) => one.should_trigger).length;
  return element(
    "header",
    { class: "panel casehead" },
    element("nav", { class: "crumbs", "aria-label": "Place" }, element("a", { href: "#/prompts" }, "Prompts")),
    element("h1", { tabindex: -1 }, inline(prompt.name)),
    element("p", { class: "outcome" }, promptStatus(prompt)),
    element("div", { class: "description" }, longText(facts.description ?? "(no description)")),
    facts.findings
      ? [
          element("p", { class: "warning" }, `${count(facts.findings, "thing")} to fix.`),
          commandLine("List them", prompt.doctor),
        ]
      : null,
    pairs([
      ["Owner", facts.owner],
      ["Tags", facts.tags.join(", ")],
      ["Place", facts.path],
      ["Cases", facts.cases.join(", ")],
      [
        "Queries",
        facts.queries.length
          ? `${should} that should trigger it, ${facts.queries.length - should} that should not`
          : null,
      ],
      ["Changed", (facts.changes ?? []).map(({ path, kind }) => `${path} (${kind})`).join(", ")],
    ]),
  );
}

function promptGates(prompt) {
  return section(
    "Gates",
    element(
      "ul",
      { class: "panel gates" },
      prompt.gates.map((gate) =>
        element(
          "li",
          { class: "gateline" },
          statusIcon(gate.passed ? "passed" : "failed"),
          element(
            "div",
            {},
            element("strong", {}, gate.status),
            gate.passed ? ": passed" : ": not passed",
            gate.reached ? element("span", { class: "note" }, " (the prompt has this status)") : null,
            gate.reasons.length ? element("ul", {}, gate.reasons.map(gateReason)) : null,
          ),
        ),
      ),
    ),
    prompt.promote ? commandLine("Promote it", prompt.promote) : null,
  );
}

function gateReason({ message, notes }) {
  return element(
    "li",
    {},
    inline(message),
    notes.length
      ? element(
          "ul",
          { class: "note" },
          notes.map((note) => element("li", {}, inline(note))),
        )
      : null,
  );
}

function examAttempts(prompt, runAddress) {
  const { attempts, total_attempts: total } = prompt;
  const title = `Exam attempts: ${total.toLocaleString("en")}`;
  if (!total)
    return section(
      title,
      element("p", { class: "panel note" }, "The exam never ran."),
      commandLine("Run it", prompt.exam),
    );
  return section(
    title,
    element(
      "ol",
      { class: "panel looks" },
      attempts.map((one) => element("li", {}, examAttempt(one, prompt, runAddress))),
    ),
    total > attempts.length ? element("p", { class: "note" }, `The last ${attempts.length}.`) : null,
  );
}

function examAttempt(one, prompt, runAddress) {
  const version = one.version === null ? "" : versionName(prompt.versions[one.version]);
  const about = [one.model, one.judge ? `judged by ${one.judge}` : "", version].filter(Boolean).join(" · ");
  const content = [
    statusIcon(one.outcome),
    element("span", { class: "id" }, inline(one.when), " UTC"),
    element("span", { class: "score" }, one.result),
    element(
      "span",
      { class: "why" },
      inline(about),
      one.failed_cases.length ? [about ? " · " : "", "not passed: ", inline(one.failed_cases.join(", "))] : null,
      one.has_run ? null : element("span", { class: "note" }, " The run is not among the results here."),
    ),
  ];
  return one.has_run
    ? element("a", { class: "look", href: runAddress(one.run_id) }, content)
    : element("div", { class: "look" }, content);
}

function versionName(version) {
  return version ? (version.current ? "the current texts" : `version ${version.sha256.slice(0, SHA_SHOWN)}`) : "";
}

function versionWords(version) {
  if (version.current) return "Now";
  return version.first === version.last ? version.first : `${version.first} to ${version.last}`;
}

function missingTexts(shown, now) {
  const added = now.texts.filter(({ path }) => !shown.texts.some((one) => one.path === path));
  return added.length
    ? element("p", { class: "note" }, `Added since: ${added.map(({ path }) => plainly(path)).join(", ")}`)
    : null;
}
