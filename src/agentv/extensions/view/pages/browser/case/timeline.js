// What an agent did, step by step: when, for how long, with which tool, at which cost.

import { count, duration, money, tokens } from "../data/numbers.js";
import { button, drawing, element, folded, hidden, section } from "../dom/elements.js";
import { inline, longText } from "../dom/text.js";
import { ROLE_WORDS } from "./transcript.js";

const KIND_WORDS = { model: "Model", tool: "Tool", permission: "Permission", message: "Message" };
const AT_ONCE = 200;
const BRIEF = 160;

export function timelineOf(told) {
  if (told.work_problem && !told.trace)
    return section("Timeline", element("p", { class: "warning" }, inline(told.work_problem)));
  const trace = told.trace;
  if (!trace) return null;
  const whole = Math.max(trace.duration_ms ?? 0, ...trace.steps.map((step) => (step.at ?? 0) + (step.took ?? 0)));
  const facts = [
    trace.agent,
    count(trace.calls, "tool call"),
    trace.errors ? count(trace.errors, "error") : null,
    tokens(trace.tokens),
    typeof trace.cost_usd === "number" ? money(trace.cost_usd) : null,
    typeof trace.duration_ms === "number" ? duration(trace.duration_ms) : null,
    trace.stop_reason ? `ended: ${trace.stop_reason}` : null,
  ]
    .filter(Boolean)
    .join(" · ");
  return section(
    `Timeline: ${count(trace.total, "step")}`,
    trace.partial ? element("p", { class: "warning" }, "The trace is partial: ", inline(trace.partial)) : null,
    element(
      "div",
      { class: "panel timeline" },
      element("p", { class: "note" }, inline(facts)),
      stepsOf(trace.steps, whole),
    ),
    trace.steps.length < trace.total
      ? element(
          "p",
          { class: "note" },
          `The first ${count(trace.steps.length, "step")}; the rest is in `,
          inline(trace.path),
        )
      : null,
  );
}

// Steps in their order, some hundreds at a time.
function stepsOf(steps, whole) {
  const list = element("ol", { class: "did" });
  const box = element("div", {}, list);
  let end = 0;
  const show = () => {
    list.append(
      ...steps
        .slice(end, end + AT_ONCE)
        .map((step) => element("li", { class: `deep${step.depth ?? 0}` }, stepOf(step, whole))),
    );
    end += AT_ONCE;
  };
  show();
  if (end < steps.length) {
    const say = () => `Show more: ${count(steps.length - end, "step")} left`;
    const more = button(
      say(),
      () => {
        show();
        if (end >= steps.length) more.remove();
        else more.textContent = say();
      },
      { class: "more" },
    );
    box.append(more);
  }
  return box;
}

function stepOf(step, whole) {
  const said =
    step.kind === "message"
      ? step.text
      : step.kind === "tool"
        ? (step.error ?? step.result ?? step.arguments)
        : (step.error ?? step.text);
  const name = step.kind === "message" ? (ROLE_WORDS[step.role] ?? step.role) : step.name;
  const aside = [
    step.kind === "permission"
      ? step.failed
        ? "denied"
        : "allowed"
      : step.failed && step.kind === "tool"
        ? step.status
        : null,
    tokens(step.tokens),
    typeof step.cost_usd === "number" ? money(step.cost_usd) : null,
    typeof step.took === "number" ? duration(step.took) : null,
  ]
    .filter(Boolean)
    .join(" · ");
  const title = element(
    "span",
    { class: `stepline of-${step.kind}${step.failed ? " failed" : ""}` },
    element("span", { class: "at" }, typeof step.at === "number" ? `+${duration(step.at)}` : ""),
    element("span", { class: "kind" }, KIND_WORDS[step.kind] ?? step.kind),
    element(
      "span",
      { class: "what" },
      name ? element("strong", {}, inline(name)) : null,
      " ",
      element("span", { class: "brief" }, inline(brief(said))),
    ),
    element("span", { class: "aside" }, step.failed ? hidden("failed: ") : null, aside),
    timeBar(step, whole),
  );
  const parts = detailsOf(step);
  return parts.length
    ? folded(title, () =>
        element(
          "div",
          { class: "stepmore" },
          parts.map(([label, text]) => [element("p", { class: "who" }, label), longText(text, { class: "code" })]),
        ),
      )
    : element("div", { class: "alone" }, title);
}

function brief(text) {
  const line = (text ?? "")
    .slice(0, 4 * BRIEF)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > BRIEF ? `${line.slice(0, BRIEF)}…` : line;
}

function detailsOf(step) {
  return [
    ["thought", step.reasoning],
    ["says", step.kind === "message" ? step.text : undefined],
    ["named by the agent", step.native],
    ["arguments", step.arguments],
    ["gives", step.result],
    ["error", step.error],
    ["reason", step.kind === "permission" ? step.text : undefined],
    ["seen by", step.evidence],
  ].filter(([, text]) => text);
}

// Where a step lies in the whole time. Attributes, since the page's policy allows no styles of elements.
function timeBar(step, whole) {
  if (typeof step.at !== "number" || whole <= 0) return element("span", { class: "bar" });
  const from = Math.min(99, (100 * step.at) / whole);
  const wide = Math.max(0.6, Math.min(100 - from, (100 * (step.took ?? 0)) / whole));
  return drawing(
    "svg",
    { class: "bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawing("rect", { class: "track", width: 100, height: 4 }),
    drawing("rect", {
      class: step.failed ? "failed" : step.kind,
      x: from.toFixed(2),
      width: wide.toFixed(2),
      height: 4,
    }),
  );
}
