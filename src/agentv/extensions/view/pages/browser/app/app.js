// The pages of a server: which of them is shown follows from the address.

/** @import { Api } from "../data/api.js" */

import { plainly, shortened } from "../data/texts.js";
import { element } from "../dom/elements.js";
import { switchMarkdown } from "../dom/markdown.js";
import { judgeAddress } from "../judge/address.js";
import { JudgeScreen } from "../judge/judge_screen.js";
import { labelAddress } from "../label/draw.js";
import { LabelScreen } from "../label/label_screen.js";
import { Frame } from "../page/frame.js";
import { listenToKeys, RUN_KEYS } from "../page/keyboard.js";
import { problemBox } from "../page/loading.js";
import { PromptScreen } from "../prompts/prompt_screen.js";
import { PromptsScreen } from "../prompts/prompts_screen.js";
import { TrendScreen } from "../trend/trend_screen.js";
import { CompareScreen } from "./compare_screen.js";
import { Palette } from "./palette.js";
import { runAddress, runWords } from "./run_rows.js";
import { RunScreen } from "./run_screen.js";
import { RunsScreen } from "./runs_screen.js";

const RUN = /^\/run\/([^/]*)(.*)$/s;
const ONE_PROMPT = /^\/prompts\/([^/]+)$/;
const FOUND_RUNS = 8;

/**
 * Pages beyond the runs, as far as the server offers them.
 *
 * @type {{ name: string, title: string, command: string, make: (app: App) => any }[]}
 */
const OFFERED = [
  { name: "compare", title: "Compare", command: "Compare runs", make: ({ api }) => new CompareScreen(api) },
  { name: "label", title: "Label", command: "Label answers", make: ({ api }) => new LabelScreen(api) },
  {
    name: "judge",
    title: "Judge",
    command: "Check the judges",
    make: ({ api, project }) => new JudgeScreen(api, project),
  },
  { name: "trend", title: "Trend", command: "Trend over runs", make: ({ api }) => new TrendScreen(api, runAddress) },
  { name: "prompts", title: "Prompts", command: "Prompts", make: ({ api }) => new PromptsScreen(api) },
];

/** @type {[string, string][]} */
const KEYS = [
  ["Ctrl+K", "go to a page or a run, or do something; also :"],
  ...RUN_KEYS,
  ["1, 0, c", "in the grid: rate the selected answer good or bad (again: take that back), or comment on it"],
  ["x", "choose the selected run, to compare it"],
  ["r", "run the case now, with --run"],
  ["1, 0, u", "while labelling: pass, fail, unsure; digits give points where the rubric has a scale"],
  ["n, b", "while labelling: write a note, go back"],
];

export class App {
  /**
   * @param {Api} api
   * @param {any} project
   */
  constructor(api, project) {
    this.api = api;
    this.project = project;
    this.palette = new Palette(
      () => this.commands(),
      (typed) => this.runs(typed),
    );
    this.frame = new Frame("#/", KEYS, this.palette.button());
    this.frame.body.after(this.palette.dialog);
    if (project.team) this.frame.tellProject(project.name);
    if (project.locked) this.frame.tellLocked();
    api.connection = (alive) => this.frame.tell(alive ? "" : "Not connected: numbers may be old.");
    /** @type {any} */
    this.screen = null;
    this.key = null;
    addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => this.shortcut(event));
    listenToKeys(() => ({
      ...this.screen?.keys(),
      t: () => this.frame.nextTheme(),
      ":": () => this.palette.open(),
      "?": () => this.frame.showHelp(),
    }));
    this.follow();
  }

  shortcut(event) {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    this.palette.open();
  }

  offers(name) {
    return (this.project.offers ?? []).includes(name);
  }

  offered() {
    return OFFERED.filter(({ name }) => this.offers(name));
  }

  follow() {
    const [path, query = ""] = location.hash.slice(1).split("?");
    const parameters = new URLSearchParams(query);
    const [key, make, rest] = this.screenAt(path, parameters);
    if (key !== this.key) this.change(key, make);
    this.screen.goTo?.(rest, parameters);
    this.mark();
  }

  /** What is at an address: a name, how it is made, and the path within it. */
  screenAt(path, parameters) {
    const run = RUN.exec(path);
    if (run) {
      const beside = this.besideIn(parameters);
      const id = decodedId(run[1]);
      return [
        `run ${JSON.stringify([id, beside])}`,
        () => new RunScreen(this.api, this.frame, id, beside, this),
        run[2],
      ];
    }
    if (path === "" || path === "/") return ["runs", () => new RunsScreen(this.api, this.project), ""];
    const page = this.offered().find(({ name }) => path === `/${name}`);
    if (page) return [page.name, () => page.make(this), ""];
    const prompt = ONE_PROMPT.exec(path);
    if (prompt && this.offers("prompts")) {
      const name = decodedId(prompt[1]);
      return [`prompt ${name}`, () => new PromptScreen(this.api, name, runAddress), ""];
    }
    return [`missing ${path}`, () => missingScreen(path), ""];
  }

  besideIn(parameters) {
    const [run, route] = [parameters.get("against"), parameters.get("beside")];
    return run && route ? { run, route } : null;
  }

  change(key, make) {
    const first = this.screen === null;
    this.screen?.leavePage?.();
    this.key = key;
    document.body.dataset.page = key.split(" ")[0];
    this.frame.subject.replaceChildren();
    this.frame.places.replaceChildren();
    this.frame.pages.replaceChildren(...this.links());
    this.screen = make();
    this.frame.show(null, this.screen.main);
    document.title = [this.screen.title, "agentv"].map((name) => shortened(plainly(name), 80)).join(" · ");
    scrollTo(0, 0);
    if (!first) this.frame.focus();
  }

  links() {
    const pages = [["Runs", "#/"], ...this.offered().map(({ name, title }) => [title, `#/${name}`])];
    return pages.map(([label, href]) => element("a", { href }, label));
  }

  mark() {
    const [path] = location.hash.split("?");
    for (const link of this.frame.pages.querySelectorAll("a"))
      if (link.getAttribute("href") === (path.startsWith("#/prompts/") ? "#/prompts" : path || "#/"))
        link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
  }

  commands() {
    const go = (label, hash, key = undefined) => ({ label, key, run: () => this.go(hash) });
    const page = this.screen instanceof RunScreen ? this.screen.page : null;
    return [
      ...(page
        ? [
            go("Overview of this run", page.home()),
            go("Cases that failed", page.chosen({ status: "failed errored" })),
            go("Flaky cases", page.chosen({ status: "flaky" })),
            ...(this.offers("label") ? [go("Label answers of this run", labelAddress({ run: this.screen.id }))] : []),
            ...(this.offers("judge")
              ? [go("Check the judges of this run", judgeAddress({ run: this.screen.id }))]
              : []),
            { label: "Search the cases", key: "/", run: () => page.startSearch() },
            { label: "Answers as Markdown or as text", key: "m", run: switchMarkdown },
            ...(page.has("evidence")
              ? [{ label: "Show in the answer what a check found", key: "e", run: () => page.press("evidence") }]
              : []),
            ...(page.has("run") ? [{ label: "Run this case now", key: "r", run: () => page.press("run") }] : []),
          ]
        : []),
      go("Runs", "#/"),
      ...this.offered().map(({ name, command }) => go(command, `#/${name}`)),
      { label: "Light, dark or system theme", key: "t", run: () => this.frame.nextTheme() },
      { label: "Keys", key: "?", run: () => this.frame.showHelp() },
    ];
  }

  async runs(typed) {
    if (this.screen.hidesRuns) return [];
    const { runs } = await this.api.get(["runs"], { q: typed, limit: FOUND_RUNS });
    return runs.map((run) => ({
      label: run.name || run.suites.join(", ") || run.run_id,
      more: runWords(run),
      run: () => this.go(runAddress(run.run_id)),
    }));
  }

  go(hash) {
    location.hash = hash;
  }
}

function decodedId(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function missingScreen(path) {
  const main = element("main", { id: "main", class: "screen", tabindex: -1 });
  main.append(problemBox(new Error(`There is no page at ${plainly(path)}.`), null));
  const leave = () => {
    location.hash = "#/";
  };
  return { main, title: "Not found", keys: () => ({ Escape: leave }) };
}
