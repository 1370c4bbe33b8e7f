// How a trial, a check or a case ended.

// Shapes and words, so that colour is never all that tells one outcome from another.
export const STATUSES = ["passed", "failed", "errored", "skipped", "shown"];

export const STATUS_WORDS = {
  passed: "passed",
  failed: "failed",
  errored: "errored",
  skipped: "not run",
  shown: "shown",
  flaky: "flaky",
};

export function isJudged(status) {
  return status === "passed" || status === "failed";
}
