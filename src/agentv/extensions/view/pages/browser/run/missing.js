// The page of an address that leads to no case: a link from the report of another run, or a mistyped one.

import { namesIn } from "../data/routes.js";
import { plainly } from "../data/texts.js";
import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";
import { lookLink } from "../list/case_words.js";

const NEAR = 10;

// `route`: of the case that is not here; null where the address leads to no case at all. `near`: cases with such an id.
export function missingPage(state, route, near) {
  const { kind } = state.source;
  const asked = route === null ? state.path : namesIn(route).join(" · ");
  return element(
    "article",
    { class: "missing" },
    element(
      "h1",
      { tabindex: -1 },
      route === null ? `This ${kind} has no such page` : `This ${kind} does not contain the case`,
    ),
    element(
      "p",
      { class: "panel" },
      "The link asks for ",
      element("code", {}, inline(asked)),
      `. This is the ${kind === "run" ? "" : `${kind} of the `}run ${plainly(state.run.facts.run_id)}; the link may belong to ${kind === "run" ? "another one" : "the report of another one"}.`,
    ),
    near.length
      ? section(
          "Cases with this id",
          element(
            "ol",
            { class: "panel looks" },
            near.slice(0, NEAR).map((one) => element("li", {}, lookLink(state, one))),
          ),
        )
      : null,
    element("p", { class: "after" }, element("a", { href: state.home() }, "Overview")),
  );
}
