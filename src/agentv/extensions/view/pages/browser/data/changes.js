// What changed between two runs.

// Matched as `agentv compare` does: by suite and case, with the file of a suite whose name another file has too; by target and variant unless both runs have a single one, and by
// prompt unless both have a single one in that suite.
export function matchRuns(run, base) {
  const runs = [run, base];
  const single = (name) => runs.every(({ cases }) => new Set(cases.map((one) => one[name])).size === 1);
  const [target, variant] = [single("target"), single("variant")];
  const [prompts, files] = ["prompt", "path"].map((name) => runs.map((one) => namesBySuite(one, name)));
  const prompt = (one) => (prompts.every((found) => found.get(one.suite)?.size === 1) ? null : one.prompt);
  const file = (one) => (files.some((found) => found.get(one.suite)?.size > 1) ? one.path : null);
  const key = (one) =>
    JSON.stringify([
      one.suite,
      file(one),
      one.id,
      prompt(one),
      variant ? null : one.variant,
      target ? null : one.target,
    ]);
  const earlier = new Map(base.cases.map((one) => [key(one), one]));
  for (const one of run.cases) {
    one.base = earlier.get(key(one)) ?? null;
    one.change = changeOf(one);
    earlier.delete(key(one));
  }
  return [...earlier.values()];
}

// The prompts, or the files, that cases of each suite have.
function namesBySuite({ cases }, name) {
  const found = new Map();
  for (const one of cases) found.set(one.suite, (found.get(one.suite) ?? new Set()).add(one[name]));
  return found;
}

export const CHANGES = {
  worse: "now fails",
  better: "now passes",
  lower: "scored lower",
  higher: "scored higher",
  same: "as before",
  unjudged: "not graded in both",
  edited: "case was edited",
  added: "not in the other run",
};

function changeOf(one) {
  const base = one.base;
  if (base === null) return "added";
  if (base.sha !== one.sha) return "edited";
  const judged = (status) => status === "passed" || status === "failed";
  if (!judged(one.status) || !judged(base.status)) return "unjudged";
  if (one.status !== base.status) return one.status === "passed" ? "better" : "worse";
  if (one.early || base.early) return "same";
  const moved = (one.score ?? 0) - (base.score ?? 0);
  if (Math.abs(moved) < 1e-9) return "same";
  return moved < 0 ? "lower" : "higher";
}

// How many cases there are of each change.
export function changesOf(run) {
  const found = new Map();
  for (const one of run.cases) found.set(one.change, (found.get(one.change) ?? 0) + 1);
  return Object.keys(CHANGES)
    .filter((change) => found.has(change))
    .map((change) => /** @type {[string, number]} */ ([change, found.get(change)]));
}

const WORSE = "worse lower";
const BETTER = "better higher";
export const DIRECTIONS = [
  [WORSE, "Got worse"],
  [BETTER, "Got better"],
];

// Whoever opens a case that moved looks for what moved: it comes first then.
export function hasMoved(one) {
  return one.base !== null && one.change !== "same";
}

// The largest change of the score first.
export function gainOf(one, other) {
  const moved = ({ score: now, base }) => Math.abs((now ?? 0) - (base.score ?? 0));
  return moved(other) - moved(one);
}

export function changeWords([change, number]) {
  return `${CHANGES[change]} (${number.toLocaleString("en")})`;
}
