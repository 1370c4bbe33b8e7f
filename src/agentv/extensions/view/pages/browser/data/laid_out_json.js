// JSON with line breaks, and where each place of the text as it was sent stands in it.

import { prettyJson } from "./texts.js";

const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:]/g;

/**
 * @param {string} text
 * @returns {{ text: string, placeOf: (place: number) => number } | null} null: it is no JSON, or is not written the same
 */
export function laidOutJson(text) {
  const pretty = prettyJson(text);
  if (pretty === null) return null;
  /** @type {[number, number][]} */
  const places = [];
  let end = 0; // of what was found in the laid out text
  for (const found of text.matchAll(JSON_TOKEN)) {
    const at = pretty.indexOf(found[0], end);
    if (at < 0 || pretty.slice(end, at).trim() !== "") return null;
    places.push([found.index, at]);
    end = at + found[0].length;
  }
  if (pretty.slice(end).trim() !== "") return null;
  const placeOf = (place) => {
    let [low, high] = [0, places.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (places[middle][0] <= place) low = middle;
      else high = middle - 1;
    }
    return places[low][1] + place - places[low][0];
  };
  return { text: pretty, placeOf };
}
