// Which answers of a run are labelled, as the address says it.

export const SAMPLE = 60;

/**
 * @typedef {object} Draw
 * @property {string} run
 * @property {string} assertion empty: all
 * @property {number} sample
 * @property {number} seed
 */

/**
 * @param {URLSearchParams} parameters
 * @returns {Draw}
 */
export function drawIn(parameters) {
  const whole = (name, otherwise) => {
    const written = parameters.get(name) ?? "";
    return /^-?\d{1,9}$/.test(written) ? Number(written) : otherwise;
  };
  return {
    run: parameters.get("run") ?? "",
    assertion: parameters.get("assertion") ?? "",
    sample: Math.max(1, whole("sample", SAMPLE)),
    seed: whole("seed", 0),
  };
}

/**
 * @param {Partial<Draw>} draw
 * @param {string} at the id of an answer
 */
export function labelAddress({ run = "", assertion = "", sample = SAMPLE, seed = 0 }, at = "") {
  const query = new URLSearchParams({
    ...(run && { run }),
    ...(assertion && { assertion }),
    ...(sample !== SAMPLE && { sample: String(sample) }),
    ...(seed && { seed: String(seed) }),
    ...(at && { at }),
  });
  return query.size ? `#/label?${query}` : "#/label";
}
