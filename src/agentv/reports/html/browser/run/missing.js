// The page of an address that leads to no case: a link from the report of another run, or a mistyped one.

import { missingParts } from "../data/routes.js";
import { plainly } from "../data/texts.js";
import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { lookLink } from "../list/case_words.js";

const NEAR = 10;

export function missingPage(state) {
  const parts = missingParts(state.path);
  const near = parts ? state.run.cases.filter((one) => parts.includes(one.id)).slice(0, NEAR) : [];
  return element(
    "article",
    { class: "missing" },
    element("h1", { tabindex: -1 }, parts ? "This report does not contain the case" : "This report has no such page"),
    element(
      "p",
      { class: "panel" },
      "The link asks for ",
      element("code", {}, inline(parts ? parts.join(" · ") : state.path)),
      `. This is the report of the run ${plainly(state.run.facts.run_id)}; the link may belong to the report of another one.`,
    ),
    near.length
      ? section(
          "Cases with this id",
          element(
            "ol",
            { class: "panel looks" },
            near.map((one) => element("li", {}, lookLink(state, one))),
          ),
        )
      : null,
    element("p", { class: "after" }, element("a", { href: state.home() }, "Overview")),
  );
}
