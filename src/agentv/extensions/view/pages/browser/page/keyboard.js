// Keys. None is taken while somebody types, and none together with Ctrl, Alt or Meta.

import { button, element } from "../dom/elements.js";

/** @type {[string, string][]} */
export const RUN_KEYS = [
  ["/", "search"],
  ["j, k", "next and previous case"],
  ["Enter", "open the selected one"],
  ["[, ]", "previous and next sample"],
  ["Esc", "leave the search, then the case, then the filters"],
  ["m", "answers as Markdown, or as text"],
  ["e", "show in the answer what a check found; again: the next check"],
  ["← ↑ ↓ →", "in the grid of answers: select a cell"],
  ["Space", "in the grid: the whole text of the selected cell"],
];

/** @type {[string, string][]} */
const KEYS_OF_ALL_PAGES = [
  ["t", "light, dark, or system theme"],
  ["?", "show these keys"],
];

export function helpDialog(keys) {
  const close = button("Close", () => dialog.close());
  const dialog = element(
    "dialog",
    { class: "help", "aria-labelledby": "keys" },
    element("h2", { id: "keys" }, "Keys"),
    element(
      "dl",
      {},
      [...keys, ...KEYS_OF_ALL_PAGES].map(([key, what]) =>
        element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)),
      ),
    ),
    close,
  );
  return dialog;
}

// `actions`: those of the page that is open, by key.
export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const target = /** @type {Element} */ (event.target);
    const typing = target.matches("input, select, textarea");
    if (typing && event.key !== "Escape" && !(event.key === "Enter" && target.matches("input.search"))) return;
    if ((event.key === "Enter" || event.key === " ") && target.matches("a, button, summary")) return;
    const action = actions()[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
