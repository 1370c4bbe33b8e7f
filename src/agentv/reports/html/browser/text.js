// Text of models and files. Characters that steer what is shown are spelled out; long texts are shown in parts.

const STEERING =
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu;
const SHOWN = 20_000;
const MORE = 200_000;
const MOST_ODD = 1000;
const INLINE = 2000;

function spelled(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function safely(text) {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(STEERING)) {
    parts.append(text.slice(from, found.index), element("span", { class: "odd" }, spelled(found[0])));
    from = found.index + found[0].length;
  }
  parts.append(from ? text.slice(from) : text);
  return parts;
}

function plainly(text) {
  return text.replace(STEERING, spelled);
}

// What reports cut: {cut, length}.
function textOf(told) {
  return told === null || told === undefined ? "" : typeof told === "string" ? told : told.cut;
}

function lengthOf(told) {
  return told === null || told === undefined ? 0 : typeof told === "string" ? told.length : told.length;
}

function inline(told) {
  const text = textOf(told);
  return element("bdi", {}, safely(text.slice(0, INLINE)), text.length > INLINE ? "…" : null);
}

// How many characters are spelled out, counted up to the most that are shown at once: each is an element to lay out.
function oddPlaces(text) {
  const places = [];
  for (const found of text.matchAll(STEERING)) {
    places.push(found.index);
    if (places.length > MOST_ODD) break;
  }
  return places;
}

function characters(number) {
  return number < 10_000 ? `${number.toLocaleString("en")} characters` : `${Math.round(number / 1000).toLocaleString("en")} k characters`;
}

// Where the next part of a text ends. No pair of surrogates is torn.
function partEnd(text, begin, wanted) {
  const places = oddPlaces(text.slice(begin, begin + wanted));
  const end = begin + (places.length > MOST_ODD ? places[MOST_ODD] : wanted);
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code <= 0xdbff ? end + 1 : end;
}

function longText(told, attributes = {}) {
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
    const more = button("", () => {
      show(MORE);
      say();
    }, { class: "more" });
    const say = () => {
      if (end >= text.length) return more.remove();
      more.textContent = `Show more: ${characters(text.length - end)} left`;
    };
    say();
    box.append(more);
  }
  if (typeof told === "object" && told !== null && told.length > text.length)
    box.append(element("p", { class: "note" }, `The report contains the first ${characters(text.length)} of ${characters(told.length)}; index.jsonl has all of them.`));
  return box;
}

function copyButton(text, what = "text") {
  const made = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      made.textContent = "Copied";
    } catch {
      made.textContent = "Not allowed here";
    }
    setTimeout(() => {
      made.textContent = "Copy";
    }, 1500);
  }, { class: "quiet", title: `Copy the ${what}` });
  return made;
}

// JSON with line breaks, where a text is an object or a list.
function prettyJson(text) {
  if (text.length > MORE || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}
