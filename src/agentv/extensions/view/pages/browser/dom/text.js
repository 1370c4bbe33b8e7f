// Text of models and files. Characters that steer what is shown are spelled out; long texts are shown in parts.

import { characters, MORE, partEnd, STEERING, spelled, textOf } from "../data/texts.js";
import { button, element } from "./elements.js";

const SHOWN = 20_000;
const INLINE = 2000;

export function safely(text) {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(STEERING)) {
    parts.append(text.slice(from, found.index), element("span", { class: "odd" }, spelled(found[0])));
    from = found.index + found[0].length;
  }
  parts.append(from ? text.slice(from) : text);
  return parts;
}

export function inline(told) {
  const text = textOf(told);
  return element("bdi", {}, safely(text.slice(0, INLINE)), text.length > INLINE ? "…" : null);
}

export function longText(told, attributes = {}) {
  const text = textOf(told);
  const pre = element("pre", { dir: "auto", ...attributes });
  const box = element("div", { class: "text" }, pre);
  let end = 0;
  const show = (number) => {
    const next = partEnd(text, end, number);
    pre.append(safely(text.slice(end, next)));
    end = next;
  };
  show(SHOWN);
  if (end < text.length) {
    const more = button(
      "",
      () => {
        show(MORE);
        say();
      },
      { class: "more" },
    );
    const say = () => {
      if (end >= text.length) return more.remove();
      more.textContent = `Show more: ${characters(text.length - end)} left`;
    };
    say();
    box.append(more);
  }
  if (typeof told === "object" && told !== null && told.length > text.length)
    box.append(
      element(
        "p",
        { class: "note" },
        `The report contains the first ${characters(text.length)} of ${characters(told.length)}; index.jsonl has all of them.`,
      ),
    );
  return box;
}

export function copyButton(text, what = "text") {
  const made = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        made.textContent = "Copied";
      } catch {
        made.textContent = "Not allowed here";
      }
      setTimeout(() => {
        made.textContent = "Copy";
      }, 1500);
    },
    { class: "quiet", title: `Copy the ${what}` },
  );
  return made;
}

// A command that can be copied.
export function commandLine(words, command) {
  return element(
    "p",
    { class: "rerun" },
    element("span", { class: "label" }, `${words}: `),
    element("code", {}, inline(command)),
    " ",
    copyButton(command, "command"),
  );
}
