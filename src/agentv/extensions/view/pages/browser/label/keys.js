// What a person can say of an answer, and the key for it, as on the screens of `agentv label`.

/**
 * @typedef {object} Choice
 * @property {string} key
 * @property {string} [also] another key
 * @property {string} label
 * @property {string} verdict
 */

/** @type {Choice[]} */
export const LABEL_CHOICES = [
  { key: "1", also: "p", label: "Pass", verdict: "pass" },
  { key: "0", also: "f", label: "Fail", verdict: "fail" },
  { key: "u", label: "Unsure", verdict: "unsure" },
];

/** What a key chooses; undefined: nothing. */
export function choiceOf(key) {
  return LABEL_CHOICES.find((one) => one.key === key || one.also === key);
}
