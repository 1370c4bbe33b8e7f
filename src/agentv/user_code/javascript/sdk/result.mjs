// What handlers return, as what a file run by hand prints. Source: seed 003, "AssertionScore".

/** The verdict with nothing left open: score, assertions, and reason and details where there are any. */
export function settle(result) {
  const given = typeof result === 'boolean' ? { pass: result } : typeof result === 'number' ? { score: result } : result;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new TypeError(`the handler must return an object with 'pass' or 'score', it returned ${String(result)}`);
  }
  const pass = given.pass ?? given.passed;
  check(pass, 'boolean', 'pass');
  check(given.score, 'number', 'score');
  const assertions = [
    ...list(given, 'assertions'),
    ...list(given, 'checks').map(({ pass: passed, reason: evidence, ...rest }) => ({ passed, evidence, ...rest })),
    ...list(given, 'hits').map((text) => ({ text, passed: true })),
    ...list(given, 'misses').map((text) => ({ text, passed: false })),
  ];
  const score = given.score == null ? (pass == null ? share(given, assertions) : Number(pass)) : Math.min(Math.max(given.score, 0), 1);
  const reason = given.reason ?? given.reasoning;
  return {
    // only where the score says something else: a failure with a high score must not read as a pass
    ...(pass != null && pass !== score >= 0.5 && { pass }),
    score,
    assertions,
    ...(reason != null && { reason }),
    ...(given.details != null && { details: given.details }),
  };
}

/** The score of a result that brings `assertions` alone: passed/total. */
function share(given, assertions) {
  if (!given.assertions?.length && !given.checks?.length) {
    throw new TypeError("the result has none of 'pass', 'score' and 'assertions'");
  }
  return assertions.filter(({ passed }) => passed === true).length / assertions.length;
}

function list(given, name) {
  const value = given[name] ?? [];
  if (!Array.isArray(value)) throw new TypeError(`'${name}' must be a list, found ${String(value)}`);
  return value;
}

function check(value, type, name) {
  if (value != null && (typeof value !== type || Number.isNaN(value) || Math.abs(value) === Infinity)) {
    throw new TypeError(`'${name}' must be a ${type === 'number' ? 'finite number' : type}, found ${String(value)}`);
  }
}
