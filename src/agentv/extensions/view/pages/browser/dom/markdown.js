// Answers as Markdown, for those who ask for it. markdown-it reads them into tokens, without markup of their own and
// with no links but to the web; elements are made here, from a list of those that are known.

import { MOST_ODD, oddPlaces, plainly, textOf } from "../data/texts.js";
import { chooseView, isChosenView, viewBox, viewSwitch } from "./answer_view.js";
import { element } from "./elements.js";
import { inline, longText, safely } from "./text.js";
import { isWebAddress, webLink } from "./web_link.js";

const MOST_MARKDOWN = 100_000;
const MOST_TOKENS = 10_000; // more take seconds to lay out
const DEEPEST = 60;
const MARKDOWN_SIGNS = /[*_`#>|[~]|^[ \t]*(?:[-+]|\d+[.)])[ \t]|^[-=]{3,}[ \t]*$/m;
const MARKDOWN_TAGS = new Set([
  "p",
  "blockquote",
  "ul",
  "ol",
  "li",
  "em",
  "strong",
  "s",
  "table",
  "thead",
  "tbody",
  "tr",
  "th",
  "td",
]);
const ALIGNED = /^text-align:(left|right|center)$/;
const markdown = { reader: null };

export function looksLikeMarkdown(text) {
  return MARKDOWN_SIGNS.test(text.slice(0, MOST_MARKDOWN));
}

export function markdownButton() {
  return viewSwitch("markdown", { "data-markdown": "", title: "Show answers as Markdown (m)" });
}

// All answers on the page, and those that are opened later.
export function switchMarkdown() {
  chooseView(isChosenView("markdown") ? "" : "markdown");
}

// A text of a model: as it is, or as Markdown.
export function saidText(told) {
  return viewBox({ markdown: () => asMarkdown(told), plain: () => longText(told) }, "plain", { class: "said" });
}

/** A text as Markdown, or why it is not shown so. */
export function asMarkdown(told) {
  return element("div", {}, markdownOf(told));
}

function markdownOf(told) {
  const text = textOf(told);
  if (!looksLikeMarkdown(text)) return [longText(told)];
  const plain = (why) => [element("p", { class: "note" }, `Not shown as Markdown: ${why}.`), longText(told)];
  if (text.length > MOST_MARKDOWN || text !== told) return plain("the answer is too long");
  if (oddPlaces(text).length > MOST_ODD) return plain("the answer has too many control characters");
  const tokens = markdownReader().parse(text, {});
  if (tokens.some(({ level }) => level >= DEEPEST - 1)) return plain("it is nested too deeply"); // the rest would be lost
  if (tokens.reduce((sum_, { children }) => sum_ + 1 + (children?.length ?? 0), 0) > MOST_TOKENS)
    return plain("it has too many parts");
  const box = element("div", { class: "markdown", dir: "auto" });
  fillMarkdown(box, tokens);
  return [box];
}

function markdownReader() {
  if (markdown.reader === null) {
    markdown.reader = globalThis.markdownit({ html: false, linkify: false, maxNesting: DEEPEST });
    markdown.reader.validateLink = isWebAddress;
  }
  return markdown.reader;
}

// Elements that are too deep for a browser are left out; what is in them stays.
function fillMarkdown(box, tokens) {
  const open = [box];
  for (const token of tokens) {
    const inside = open.at(-1);
    if (token.hidden) continue;
    if (token.nesting > 0) open.push(open.length > DEEPEST ? inside : openedMarkdown(token, inside));
    else if (token.nesting < 0) open.pop();
    else if (token.type === "inline") fillMarkdown(inside, token.children);
    else inside.append(markdownLeaf(token));
  }
}

function openedMarkdown(token, inside) {
  const made = markdownElement(token);
  inside.append(
    token.tag === "table"
      ? element("div", { class: "scrolls", tabindex: 0, role: "group", "aria-label": "Table" }, made)
      : made,
  );
  return made;
}

// Headings of an answer are none of the page: they come below those, for whoever goes by headings.
function markdownElement(token) {
  const { tag } = token;
  if (tag === "a") return webLink(token.attrGet("href"));
  if (/^h[1-6]$/.test(tag))
    return element("p", { class: `heading ${tag}`, role: "heading", "aria-level": Math.min(6, Number(tag[1]) + 2) });
  if (!MARKDOWN_TAGS.has(tag)) return element("span");
  const aligned = ALIGNED.exec(token.attrGet("style") ?? "");
  return element(tag, { class: aligned ? aligned[1] : null, start: tag === "ol" ? token.attrGet("start") : null });
}

function markdownLeaf(token) {
  if (token.type === "softbreak") return "\n";
  if (token.type === "hardbreak") return element("br");
  if (token.type === "hr") return element("hr");
  if (token.type === "code_inline") return element("code", {}, safely(token.content));
  if (token.type === "fence" || token.type === "code_block")
    return longText(token.content.replace(/\n$/, ""), { class: "code" });
  if (token.type === "image")
    return element(
      "span",
      { class: "tag", title: plainly(token.attrGet("src") ?? "") },
      "image: ",
      inline(token.content || token.attrGet("src")),
    );
  return safely(token.content);
}
