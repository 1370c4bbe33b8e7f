// A run in a row: what ran, how it is going or went, what it cost, and how its suites did before.

import { count, duration, moment, money, partWords, percent } from "../data/numbers.js";
import { STATUS_WORDS, STATUSES } from "../data/statuses.js";
import { plainly, shortened } from "../data/texts.js";
import { intervalDrawing, outcomesDrawing, sparkDrawing } from "../dom/charts.js";
import { element, hidden } from "../dom/elements.js";
import { partMark } from "../dom/outcomes.js";
import { progressBar, stateMark } from "../dom/progress.js";
import { inline } from "../dom/text.js";

const FEW = 3;

// Pass rates of earlier runs with the same suites, and of this one.
function trendOf({ trend = [], pass_rate: rate }) {
  return trend.length && rate !== null ? sparkDrawing([...trend, rate]) : hidden("no earlier runs");
}

export function runAddress(id) {
  return `#/run/${encodeURIComponent(id.toWellFormed())}/`;
}

/**
 * @param {any} run as the server lists it
 * @param {{ trend: boolean, cost: boolean }} shown what is known of any run of the list
 * @param {(run: any, chosen: boolean) => void} choose called where it is marked for a comparison
 * @param {boolean} chosen
 */
export function runRow(run, shown, choose, chosen) {
  const mark = element("input", {
    type: "checkbox",
    "aria-label": `Compare ${plainly(titleOf(run))}`,
    change: () => choose(run, mark.checked),
  });
  mark.checked = chosen;
  return element(
    "tr",
    { class: `run ${run.state}`, "data-run": run.run_id },
    element("td", { class: "pick" }, mark),
    element("th", { scope: "row" }, nameOf(run)),
    element("td", { class: "result" }, outcomeOf(run)),
    shown.trend ? element("td", { class: "trend" }, trendOf(run)) : null,
    shown.cost ? element("td", { class: "number cost" }, costOf(run)) : null,
    element("td", { class: "number took" }, run.duration_ms === null ? "–" : duration(run.duration_ms)),
    element("td", { class: "number when" }, beganOf(run)),
  );
}

function titleOf(run) {
  return run.name || run.suites.join(", ") || run.run_id;
}

/** A run in a list to choose from: its date, its rate, what ran, its id. */
export function runWords(run) {
  const rate = run.pass_rate === null || run.pass_rate === undefined ? "" : percent(run.pass_rate);
  const facts = [
    moment(run.started),
    rate,
    run.partial ? partWords(run.partial) : "",
    titleOf(run),
    few(run.targets ?? []),
    run.run_id,
  ];
  return shortened(plainly([...new Set(facts)].filter(Boolean).join(" · ")), 140);
}

/** The newest finished runs of whole suites first, then the others. */
export function wholeFirst(runs) {
  const whole = ({ partial, state }) => !partial && state === "finished";
  return [...runs.filter(whole), ...runs.filter((run) => !whole(run))];
}

function nameOf(run) {
  const named = run.name ? [few(run.suites), few(run.targets)] : [few(run.targets)];
  return [
    element("a", { class: "runname", href: runAddress(run.run_id) }, inline(run.name || few(run.suites) || run.run_id)),
    element("span", { class: "under" }, [
      ...named.filter(Boolean).map((words) => [inline(words), element("span", { "aria-hidden": "true" }, " · ")]),
      element("code", {}, inline(run.run_id)),
    ]),
    run.partial ? partMark(run.partial) : null,
    run.failed_gates ? element("span", { class: "mark worse" }, "gate failed") : null,
    run.tags.length
      ? element(
          "span",
          { class: "tags" },
          run.tags.map((tag) => element("span", { class: "tag" }, inline(tag))),
        )
      : null,
  ];
}

function few(names) {
  const shown = names.slice(0, FEW).map((name) => shortened(name, 40));
  return names.length > FEW ? `${shown.join(", ")} and ${names.length - FEW} more` : shown.join(", ");
}

function outcomeOf(run) {
  if (run.state === "unreadable")
    return [stateMark(run), element("span", { class: "small" }, inline(run.problem ?? "Its files cannot be read."))];
  const interval = run.pass_rate_interval;
  return [
    run.state === "running" ? progressBar(run) : null,
    run.pass_rate === null || run.pass_rate === undefined
      ? element("span", { class: "small" }, run.state === "running" ? "" : "Nothing graded. ")
      : element(
          "span",
          { class: "rateline" },
          element("strong", {}, percent(run.pass_rate)),
          run.state === "interrupted" ? stateMark(run) : null,
          interval ? intervalDrawing(run.pass_rate, interval) : outcomesDrawing(run.cases),
        ),
    element("span", { class: "small" }, countsOfRun(run)),
  ];
}

function countsOfRun({ cases, state }) {
  if (!cases) return "";
  const told = state === "running" ? { ...cases, skipped: 0 } : cases; // those are still to run
  const total = STATUSES.reduce((sum_, status) => sum_ + told[status], 0);
  const words = STATUSES.filter((status) => told[status]).map(
    (status) => `${told[status].toLocaleString("en")} ${STATUS_WORDS[status]}`,
  );
  return total ? `${count(total, "case")}: ${words.join(", ")}` : "";
}

function costOf({ cost_usd: cost }) {
  return cost === null || cost === undefined ? element("span", { title: "not known" }, "–") : money(cost);
}

const UNITS = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [14, "d"],
];

/** `5 min ago`; a date after some days; null of what is no time. */
export function ageOf(written, now = Date.now()) {
  const when = Date.parse(written ?? "");
  if (Number.isNaN(when)) return null;
  let age = Math.max(0, (now - when) / 1000);
  for (const [size, unit] of UNITS) {
    if (age < Number(size)) return unit === "s" ? "just now" : `${Math.floor(age)} ${unit} ago`;
    age /= Number(size);
  }
  return new Date(when).toISOString().slice(0, 10);
}

function beganOf({ started }) {
  const age = ageOf(started);
  return age ? element("time", { datetime: new Date(started).toISOString(), title: moment(started) }, age) : "–";
}
