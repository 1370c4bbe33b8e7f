// Answers on which judge and people differ: false passes first, since a green run hides them.

import { count } from "../data/numbers.js";
import { giveRoutes } from "../data/routes.js";
import { button, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

const DISAGREEMENTS = 50;

/** The case of a disagreement, or, where labels alone do not say which it is, the cases that are called so. */
export function caseAddress({ run, suite, case: id, target, prompt, variant }) {
  const root = `#/run/${encodeURIComponent(run.toWellFormed())}`;
  if (target === null) return `${root}/cases?${new URLSearchParams({ q: id })}`;
  const [route] = giveRoutes([{ suite, id, target, prompt, variant }]).keys();
  return `${root}/case/${route}`;
}

export function disagreements(found) {
  if (!found.length) return null;
  const passes = found.filter(({ kind }) => kind === "false-pass").length;
  const failures = found.length - passes;
  const list = element("ul", { class: "panel looks" });
  let end = 0;
  const show = (number) => {
    list.append(...found.slice(end, end + number).map(disagreement));
    end = Math.min(found.length, end + number);
  };
  show(DISAGREEMENTS);
  const more = button(
    "",
    () => {
      show(DISAGREEMENTS);
      say();
    },
    { class: "more" },
  );
  const say = () => {
    if (end >= found.length) return more.remove();
    more.textContent = `Show more: ${(found.length - end).toLocaleString("en")} left`;
  };
  const made = element(
    "section",
    {},
    element(
      "h3",
      {},
      `${count(found.length, "disagreement")}: ${passes} false pass${passes === 1 ? "" : "es"}, ${count(failures, "false failure")}`,
    ),
    list,
    more,
  );
  say();
  return made;
}

function disagreement(one) {
  const passed = one.kind === "false-pass";
  return element(
    "li",
    { class: "disagreement" },
    element(
      "a",
      { class: "id", href: caseAddress(one) },
      element("span", { class: `mark ${passed ? "worse" : "edited"}` }, passed ? "false pass" : "false failure"),
      inline(one.case),
    ),
    element(
      "ul",
      { class: "small" },
      one.labels.map(({ person, label, note }) =>
        element("li", {}, inline(person), `: ${label}`, note ? [" · ", inline(note)] : null),
      ),
    ),
  );
}
