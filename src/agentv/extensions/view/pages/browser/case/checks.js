// The grades of a trial: what was asked, what was found, and why.

import { duration, score } from "../data/numbers.js";
import { STATUSES } from "../data/statuses.js";
import { textOf } from "../data/texts.js";
import { element, folded, section } from "../dom/elements.js";
import { statusIcon } from "../dom/outcomes.js";
import { inline, longText } from "../dom/text.js";
import { code } from "./transcript.js";

export function checksOf(told, evidence) {
  const found = told.checks ?? [];
  if (!found.length) return null;
  const passed = found.filter((check) => check.state === 0).length;
  return section(
    `Checks: ${passed} of ${found.length} passed`,
    element(
      "div",
      { class: "checks" },
      found.map((grade, number) => gradeOf(grade, number, evidence)),
    ),
  );
}

function gradeOf(grade, number, evidence) {
  const status = STATUSES[grade.state];
  const title = [
    statusIcon(status),
    element("span", { class: "name" }, inline(grade.name)),
    grade.required
      ? element("span", { class: "tag gate" }, grade.required === true ? "required" : `required ${grade.required}`)
      : null,
    grade.weight === undefined ? null : element("span", { class: "tag" }, `weight ${grade.weight}`),
    grade.needs === undefined ? null : element("span", { class: "tag" }, grade.needs),
    element("span", { class: "score" }, grade.score === undefined ? "" : score(grade.score)),
  ];
  return folded(title, () => gradeBody(grade, evidence.button(number)), {
    class: `grade panel ${status}`,
    open: grade.state !== 0,
    ...(evidence.knows(number) ? { "data-does": "evidence", press: () => evidence.show(number) } : {}),
  });
}

function gradeBody(grade, reveal) {
  const body = document.createDocumentFragment();
  if (grade.error)
    body.append(
      element(
        "p",
        { class: "problem" },
        element("code", {}, inline(grade.error.code)),
        " ",
        inline(grade.error.message),
      ),
    );
  const told = (grade.checks ?? []).map((check) => checkOf(check, saysNothingNew(grade))).filter(Boolean);
  if (told.length) body.append(element("ul", { class: "evidence" }, told));
  if (
    grade.reason &&
    !grade.error &&
    !(grade.checks ?? []).some((check) => textOf(check.text) === textOf(grade.reason))
  )
    body.append(
      element(
        "figure",
        { class: "reason" },
        element("figcaption", {}, "Reason"),
        longText(grade.reason, { class: "prose" }),
      ),
    );
  if (reveal) body.append(element("p", { class: "reveal" }, reveal));
  body.append(
    element("p", { class: "small" }, [
      named(grade) ? null : [inline(grade.type), " "],
      grade.source ? ["at ", element("code", {}, inline(grade.source))] : null,
      grade.duration_ms >= 1 ? `, graded in ${duration(grade.duration_ms)}` : null,
    ]),
  );
  if (grade.details) body.append(folded("Details", () => code(JSON.stringify(grade.details, null, 2))));
  return body;
}

// Whether the name tells the type: `contains: '30 days'`.
function named(grade) {
  return textOf(grade.name) === grade.type || textOf(grade.name).startsWith(`${grade.type}: `);
}

// A single check in the words of the name, which stand right above it: `not: contains 'x'` of `not-contains: 'x'`.
function saysNothingNew(grade) {
  const [first] = grade.checks;
  return (
    grade.checks.length === 1 && textOf(first.text).replace("not: ", "not-") === textOf(grade.name).replace(": ", " ")
  );
}

function checkOf(check, alone) {
  if (alone)
    return check.evidence ? element("li", { class: "alone" }, longText(check.evidence, { class: "quote" })) : null;
  return element(
    "li",
    {},
    statusIcon(check.passed ? "passed" : "failed"),
    element(
      "div",
      {},
      longText(check.text, { class: "asked" }),
      check.evidence ? longText(check.evidence, { class: "quote" }) : null,
    ),
  );
}
