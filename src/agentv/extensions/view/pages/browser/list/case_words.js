// A case in a line: where it belongs, why it ended as it did, and a link to it.

import { isFlaky } from "../data/cases.js";
import { CHANGES } from "../data/changes.js";
import { score } from "../data/numbers.js";
import { shortened } from "../data/texts.js";
import { element } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline } from "../dom/text.js";

export const WHERE = 26;

// What must be seen at once of a case: what changed, and that its samples disagree.
export function marks(one) {
  const found = [];
  if (one.change && one.change !== "same")
    found.push(element("span", { class: `mark ${one.change}` }, CHANGES[one.change]));
  if (isFlaky(one)) found.push(element("span", { class: "mark flaky" }, "flaky"));
  return found;
}

// Where a case belongs, as far as that tells it from others: cases of several prompts or targets share an id.
export function whereOf(one, most) {
  const { tables } = one;
  const where = [
    tables.suites.length > 1 ? one.suite : null,
    tables.prompts.length > 1 ? one.prompt : null,
    tables.targets.length > 1 ? one.target : null,
    tables.variants.length > 1 ? one.variant : null,
  ];
  return where
    .filter(Boolean)
    .map((name) => shortened(name, most))
    .join(" · ");
}

// Where it belongs, and why it ended as it did.
export function underneath(one, most) {
  return [whereOf(one, most), one.teaser].filter(Boolean).join(" · ");
}

export function lookLink(state, one) {
  return element(
    "a",
    { class: "look", href: state.address(one) },
    statusIcon(one.status),
    element("span", { class: "id" }, inline(one.id), marks(one)),
    element("span", { class: "score" }, one.status === "errored" ? "" : score(one.score)),
    element("span", { class: "why" }, inline(underneath(one))),
  );
}
