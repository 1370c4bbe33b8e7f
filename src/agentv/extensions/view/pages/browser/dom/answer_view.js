// How answers are shown: as Markdown, JSON, code, or plain. It is chosen once, kept by the browser, and followed wherever an
// answer can be shown so; elsewhere an answer is shown as it usually is.

import { button, element } from "./elements.js";
import { store, stored } from "./storage.js";

/** @typedef {"markdown" | "json" | "code" | "plain"} AnswerView */

/** @type {Record<AnswerView, string>} */
const VIEW_NAMES = { markdown: "Markdown", json: "JSON", code: "Code", plain: "Plain" };
const answerView = { chosen: stored("answer-view") ?? "", boxes: new WeakMap() };

/** Whether answers that can be shown so are. @param {string} view */
export function isChosenView(view) {
  return answerView.chosen === view;
}

/** All answers on the page, and those that are opened later. @param {string} view empty: as usual */
export function chooseView(view) {
  answerView.chosen = view;
  store("answer-view", view);
  followView(document);
}

/** Show answers as it was chosen meanwhile. @param {Document | Element} root */
export function followView(root) {
  for (const box of root.querySelectorAll("[data-views]")) answerView.boxes.get(box)?.();
}

/**
 * An answer that can be shown in several ways.
 *
 * @param {Partial<Record<AnswerView, () => Node>>} views
 * @param {AnswerView} usual
 */
export function viewBox(views, usual, attributes = {}) {
  const box = element("div", { "data-views": "", ...attributes });
  return followed(box, () => box.replaceChildren(views[viewOf(Object.keys(views), usual)]()));
}

/**
 * What chooses between ways of showing an answer.
 *
 * @param {AnswerView[]} views
 * @param {AnswerView} usual
 */
export function viewButtons(views, usual) {
  const made = views.map((view) => button(VIEW_NAMES[view], () => chooseView(view), { class: "quiet" }));
  const box = element(
    "div",
    { "data-views": "", class: "views", role: "group", "aria-label": "Show answers as" },
    made,
  );
  return followed(box, () => {
    const shown = viewOf(views, usual);
    for (const [place, view] of views.entries()) made[place].setAttribute("aria-pressed", String(view === shown));
  });
}

/** A button that has answers shown as something, or as usual. @param {AnswerView} view */
export function viewSwitch(view, attributes = {}) {
  const press = () => chooseView(isChosenView(view) ? "" : view);
  const made = button(VIEW_NAMES[view], press, { class: "quiet", "data-views": "", ...attributes });
  return followed(made, () => made.setAttribute("aria-pressed", String(isChosenView(view))));
}

function viewOf(views, usual) {
  return views.includes(answerView.chosen) ? answerView.chosen : usual;
}

function followed(box, show) {
  answerView.boxes.set(box, show);
  show();
  return box;
}
