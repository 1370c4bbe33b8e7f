// What a person can say of an answer, and the key for it: as on the screens of `agentv label`, where digits give points
// if the rubric has a scale. Without one, 1 and p say pass, and 0 and f say fail.

const VERDICTS = [
  { key: "1", also: "p", label: "Pass", said: { verdict: "pass" } },
  { key: "0", also: "f", label: "Fail", said: { verdict: "fail" } },
];
const UNSURE = { key: "u", label: "Unsure", said: { verdict: "unsure" } };
const LAST_DIGIT = 9;

/**
 * @typedef {object} Choice
 * @property {string} key
 * @property {string} [also] another key
 * @property {string} label
 * @property {{ verdict?: string, points?: number } | null} said null: the points are asked for
 */

/**
 * @param {{ low: number, high: number } | null} scale
 * @returns {Choice[]}
 */
export function choicesOf(scale) {
  if (scale === null) return [...VERDICTS, UNSURE];
  if (scale.low < 0 || scale.high > LAST_DIGIT) return [{ key: "s", label: "Points…", said: null }, UNSURE];
  const points = Array.from({ length: scale.high - scale.low + 1 }, (_, place) => scale.low + place);
  return [...points.map((one) => ({ key: String(one), label: String(one), said: { points: one } })), UNSURE];
}

/** What a key chooses; undefined: nothing. */
export function choiceOf(key, scale) {
  const wanted = key.toLowerCase();
  return choicesOf(scale).find((one) => one.key === wanted || one.also === wanted);
}

/** The points that somebody typed; null: they are none of the scale. */
export function pointsIn(typed, { low, high }) {
  const points = Number(typed.trim());
  return /^-?\d+$/.test(typed.trim()) && points >= low && points <= high ? points : null;
}

/** @param {{ verdict: string, points: number | null }} given */
export function givenWords({ verdict, points }) {
  if (points === null) return verdict;
  return `${verdict}, ${points} point${points === 1 ? "" : "s"}`;
}
