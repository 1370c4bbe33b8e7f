// Messages: what was said by which role, and which tools were called.

import { count, duration, money, tokens } from "../data/numbers.js";
import { characters, lengthOf, prettyJson } from "../data/texts.js";
import { viewBox, viewButtons } from "../dom/answer_view.js";
import { element, folded, section } from "../dom/elements.js";
import { saidText } from "../dom/markdown.js";
import { inline, longText } from "../dom/text.js";

export const ROLE_WORDS = { system: "System", user: "User", assistant: "Assistant", tool: "Tool" };
const SHORT = 1500;
const MANY = 4;
const LAST = 2;

function messageOf(message) {
  const calls = (message.calls ?? []).map(callOf);
  const text =
    message.text === undefined || message.text === ""
      ? null
      : answerText(message.text, message.role === "assistant" ? saidText : longText);
  const who = element(
    "p",
    { class: "who" },
    ROLE_WORDS[message.role] ?? message.role,
    message.name ? [" ", inline(message.name)] : null,
  );
  if (message.role === "system" && lengthOf(message.text) > SHORT)
    return element(
      "div",
      { class: "message system" },
      who,
      folded(characters(lengthOf(message.text)), () => answerText(message.text, longText)),
    );
  return element("div", { class: `message ${message.role}` }, who, text, calls);
}

export function code(text) {
  return longText(text, { class: "code" });
}

function callOf(call) {
  const given = Object.keys(call.arguments ?? {}).length ? code(JSON.stringify(call.arguments, null, 2)) : null;
  return element(
    "div",
    { class: "call" },
    element(
      "p",
      {},
      "calls ",
      element("code", {}, inline(call.name)),
      call.duration_ms ? ` (${duration(call.duration_ms)})` : null,
    ),
    given,
    call.output ? [element("p", { class: "who" }, "gives"), longText(call.output)] : null,
  );
}

// A text; usually as JSON with line breaks where it is some. What a model said may be
// shown as Markdown.
export function answerText(told, plain = saidText) {
  const pretty = typeof told === "string" ? prettyJson(told) : null;
  if (pretty === null || pretty === told) return plain(told);
  const shown = viewBox({ json: () => code(pretty), plain: () => longText(told) }, "json");
  return element("div", {}, shown, viewButtons(["json", "plain"], "json"));
}

// The block that began an answer, which no assertion saw.
export function thoughtsOf({ thoughts }) {
  if (thoughts === undefined) return null;
  const title = `Thoughts, not graded: ${characters(lengthOf(thoughts))}`;
  return folded(title, () => longText(thoughts), { class: "panel thoughts" });
}

export function inputOf(told) {
  const messages = told.input ?? [];
  if (!messages.length) return null;
  const early = messages.length > MANY ? messages.slice(0, -LAST) : [];
  const late = messages.slice(early.length);
  return section(
    messages.length > 1 ? `Input: ${messages.length} messages` : "Input",
    element(
      "div",
      { class: "panel messages" },
      early.length
        ? folded(count(early.length, "earlier message"), () =>
            element("div", { class: "messages" }, early.map(messageOf)),
          )
        : null,
      late.map(messageOf),
    ),
  );
}

export function turnsOf(told) {
  const turns = told.turns ?? [];
  if (!turns.length) return null;
  return section(
    `Turns: ${turns.length}`,
    turns.map((turn, number) => {
      const facts = [
        turn.duration_ms === undefined ? null : duration(turn.duration_ms),
        turn.time_to_first_token_ms === undefined ? null : `first token after ${duration(turn.time_to_first_token_ms)}`,
        tokens(turn.tokens),
        turn.cost_usd === undefined ? null : money(turn.cost_usd),
      ];
      const title = `Answer ${number + 1}${facts.some(Boolean) ? `: ${facts.filter(Boolean).join(", ")}` : ""}`;
      const body = () =>
        turn.messages
          ? element("div", { class: "messages" }, turn.messages.map(messageOf))
          : element("div", { class: "stack" }, thoughtsOf(turn), answerText(turn.output));
      return folded(title, body, { class: "panel", open: turns.length < 4 });
    }),
  );
}

export function transcriptOf(told) {
  const messages = told.messages ?? [];
  if (!messages.length || told.turns) return null;
  return section(
    `Transcript: ${messages.length} messages`,
    element("div", { class: "panel messages" }, messages.map(messageOf)),
  );
}
