// What was evaluated.

import { element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

// What was evaluated.
export function subjectOf(run) {
  const { suites, targets, prompts, variants } = run.tables;
  const named = [
    ["suite", suites],
    ["target", targets],
    ["prompt", prompts],
    ["variant", variants],
  ];
  return element(
    "ul",
    { class: "facts subject" },
    named
      .filter(([, names]) => names.length)
      .map(([what, names]) =>
        element(
          "li",
          {},
          element("span", { class: "label" }, names.length > 1 ? `${what}s` : what),
          " ",
          someNames(names),
        ),
      ),
  );
}

const NAMED = 6;

export function someNames(names) {
  const more = names.length - NAMED;
  return [
    names.slice(0, NAMED).map((name, number) => [number ? ", " : null, inline(name)]),
    more > 0 ? ` and ${more.toLocaleString("en")} more` : null,
  ];
}
