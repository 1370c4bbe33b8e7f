// One answer with what it is judged by. Nothing of it, and nothing that it leads to, tells what the judge said.

import { answerText } from "../case/transcript.js";
import { count } from "../data/numbers.js";
import { element, section } from "../dom/elements.js";
import { markdownButton } from "../dom/markdown.js";
import { inline, longText } from "../dom/text.js";

/** @param {any} queue */
export function answerPage(queue, ...actions) {
  const { answer, place, total, left } = queue;
  const done = total - left;
  return element(
    "article",
    { class: "labelling" },
    element(
      "header",
      { class: "labelhead" },
      element("h1", { tabindex: -1 }, `Answer ${place} of ${total.toLocaleString("en")}`),
      element("p", { class: "note" }, inline(answer.case), " · ", inline(answer.assertion)),
      element(
        "div",
        { class: "progress" },
        element("progress", { max: total, value: done, "aria-label": "Labelled answers" }),
        element("span", { class: "small" }, `${count(left, "answer")} left, you label as `, inline(queue.person)),
      ),
    ),
    part("Input", answer.input),
    answer.retrieved.map((text) => part("Retrieved", text)),
    part("Reference", answer.reference),
    section(
      "Answer",
      element(
        "div",
        { class: "panel answer" },
        element("div", { class: "corner" }, markdownButton()),
        answer.output ? answerText(answer.output) : element("p", { class: "note" }, "The answer is empty."),
      ),
    ),
    section("Criteria", element("div", { class: "panel" }, longText(answer.criteria, { class: "prose" }))),
    actions,
  );
}

function part(title, text) {
  return text ? section(title, element("div", { class: "panel" }, answerText(text, longText))) : null;
}
