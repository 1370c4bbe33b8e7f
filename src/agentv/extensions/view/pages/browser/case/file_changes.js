// What an agent changed: the diff of its workspace, file by file.

import { count } from "../data/numbers.js";
import { button, element, folded, section } from "../dom/elements.js";
import { inline, safely } from "../dom/text.js";

const LINES_AT_ONCE = 400;
const FEW_LINES = 300;
const LONG_LINE = 2000;

export function fileChangesOf(told) {
  const diff = told.diff;
  if (!diff)
    return told.work_problem && told.trace
      ? section("Changes", element("p", { class: "warning" }, inline(told.work_problem)))
      : null;
  const files = filesOf(diff.text.replace(/\n$/, "").split("\n"));
  const open = diff.lines <= FEW_LINES;
  return section(
    `Changes: ${count(files.length, "file")}`,
    element(
      "div",
      { class: "stack" },
      files.map((file) => folded(fileTitle(file), () => linesOf(file.lines), { class: "panel patch", open })),
    ),
    diff.lines < diff.total
      ? element(
          "p",
          { class: "note" },
          `The first ${count(diff.lines, "line")} of ${diff.total.toLocaleString("en")}; the rest is in `,
          inline(diff.path),
        )
      : null,
  );
}

function filesOf(lines) {
  const files = [];
  for (const line of lines) {
    if (line.startsWith("diff --git ") || !files.length)
      files.push({ name: nameIn(line), added: 0, removed: 0, lines: [], head: true });
    const file = files.at(-1);
    const kind = kindOf(line, file);
    if (kind === "added") file.added += 1;
    if (kind === "removed") file.removed += 1;
    if (line.startsWith("+++ b/")) file.name = line.slice(6);
    if (line.startsWith("--- a/") && file.head) file.name = line.slice(6);
    file.lines.push([kind, line]);
  }
  return files;
}

// git names the file twice; both names are the same unless it was renamed.
function nameIn(line) {
  const names = line.replace(/^diff --git /, "");
  const half = (names.length - 1) / 2;
  return Number.isInteger(half) && names.slice(2, half) === names.slice(half + 3) ? names.slice(2, half) : names;
}

// Before the first hunk all lines are about the file; in a hunk, "+++" may be a line that begins with "++".
function kindOf(line, file) {
  if (line.startsWith("@@")) {
    file.head = false;
    return "hunk";
  }
  if (file.head) return "about";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

function fileTitle(file) {
  return element(
    "span",
    { class: "filetitle" },
    element("code", {}, inline(file.name)),
    " ",
    element(
      "span",
      { class: "counts" },
      element("ins", {}, `+${file.added}`),
      " ",
      element("del", {}, `−${file.removed}`),
    ),
  );
}

function linesOf(lines) {
  const list = element("div", { class: "patchlines" });
  const box = element("div", {}, list);
  let end = 0;
  const show = () => {
    list.append(
      ...lines
        .slice(end, end + LINES_AT_ONCE)
        .map(([kind, line]) =>
          element(
            "div",
            { class: `patchline ${kind}` },
            safely(line.slice(0, LONG_LINE)),
            line.length > LONG_LINE ? "…" : null,
          ),
        ),
    );
    end += LINES_AT_ONCE;
  };
  show();
  if (end < lines.length) {
    const say = () => `Show more: ${count(lines.length - end, "line")} left`;
    const more = button(
      say(),
      () => {
        show();
        if (end >= lines.length) more.remove();
        else more.textContent = say();
      },
      { class: "more" },
    );
    box.append(more);
  }
  return box;
}
