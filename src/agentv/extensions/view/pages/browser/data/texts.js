// Texts of models and files as strings: what steers their display is spelled out, and long ones are cut.

export const STEERING =
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu;

export const MORE = 200_000;
export const MOST_ODD = 1000;

export function spelled(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

export function plainly(text) {
  return text.replace(STEERING, spelled);
}

// What reports cut: {cut, length}.
export function textOf(told) {
  return told === null || told === undefined ? "" : typeof told === "string" ? told : told.cut;
}

export function lengthOf(told) {
  return told === null || told === undefined ? 0 : typeof told === "string" ? told.length : told.length;
}

// How many characters are spelled out, counted up to the most that are shown at once: each is an element to lay out.
export function oddPlaces(text) {
  const places = [];
  for (const found of text.matchAll(STEERING)) {
    places.push(found.index);
    if (places.length > MOST_ODD) break;
  }
  return places;
}

export function characters(number) {
  return number < 10_000
    ? `${number.toLocaleString("en")} characters`
    : `${Math.round(number / 1000).toLocaleString("en")} k characters`;
}

// Where the next part of a text ends. No pair of surrogates is torn.
export function partEnd(text, begin, wanted) {
  const places = oddPlaces(text.slice(begin, begin + wanted));
  const end = begin + (places.length > MOST_ODD ? places[MOST_ODD] : wanted);
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code <= 0xdbff ? end + 1 : end;
}

// JSON with line breaks, where a text is an object or a list.
export function prettyJson(text) {
  if (text.length > MORE || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

export function shortened(label, most = 60) {
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}
