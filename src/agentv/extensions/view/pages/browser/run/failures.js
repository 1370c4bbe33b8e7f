// What went wrong, by cause, as it was grouped for all reports; each cause leads to its cases.

import { count } from "../data/numbers.js";
import { button, element, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { commandLine, inline } from "../dom/text.js";
import { WHERE, whereOf } from "../list/case_words.js";

const CAUSES = 10;
const EXAMPLES = 4;

export function failures(state) {
  const { groups, rerun } = state.run.failures;
  if (!groups.length) return null;
  const list = element("ol", { class: "panel looks causes" });
  const show = (from, to) =>
    list.append(...groups.slice(from, to).map((group) => element("li", {}, causeOf(state, group))));
  show(0, CAUSES);
  const more =
    groups.length > CAUSES
      ? button(
          `Show all ${groups.length.toLocaleString("en")} causes`,
          () => {
            show(CAUSES, groups.length);
            more.remove();
          },
          { class: "more" },
        )
      : null;
  return section(
    "Failures by cause",
    list,
    more,
    rerun && (groups.length > 1 || state.runFailed) ? commandLine("Run the failed cases again", rerun) : null,
    rerun && state.runFailed && state.run.state !== "running" ? state.runFailed() : null,
  );
}

function causeOf(state, group) {
  const cases = group.examples;
  const trials = group.trials > group.cases ? ` (${count(group.trials, "trial")})` : "";
  return [
    element(
      "a",
      {
        class: "look",
        href: group.trials > 1 || !cases.length ? state.chosen({ why: group.cause }) : state.address(cases[0]),
      },
      statusIcon(group.status),
      element("span", { class: "id" }, inline(group.cause)),
      element("span", { class: "score" }, count(group.cases, "case"), trials),
    ),
    element(
      "p",
      { class: "examples" },
      cases
        .slice(0, EXAMPLES)
        .map((one, number) => [number ? ", " : null, element("a", { href: state.address(one) }, exampleOf(one))]),
      cases.length > EXAMPLES ? ", …" : null,
    ),
    group.rerun ? commandLine(rerunWords(group), group.rerun.command) : null,
  ];
}

function rerunWords({ rerun, cases }) {
  return rerun.cases === cases ? "Run again" : rerun.cases === 1 ? "Run one again" : "Run some again";
}

// Its id, and what else tells it from others.
function exampleOf(one) {
  const where = whereOf(one, WHERE);
  return where ? [inline(one.id), " (", inline(where), ")"] : inline(one.id);
}
