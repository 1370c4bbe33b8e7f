// What checks found in an answer, as stretches of it; and answers that are one block of code.

/** @typedef {{ begin: number, end: number, grade: number, passed: boolean }} Hit */

/** The places that the checks of a trial name, in code units of its answer. @returns {Hit[]} */
export function hitsOf(checks) {
  return (checks ?? []).flatMap((grade, number) =>
    (grade.checks ?? []).flatMap((check) =>
      (check.at ?? []).map(([begin, end]) => ({ begin, end, grade: number, passed: Boolean(check.passed) })),
    ),
  );
}

/**
 * A text in stretches that lie within the same hits; together they are the text.
 *
 * @param {Hit[]} hits
 * @returns {{ begin: number, end: number, hits: Hit[] }[]}
 */
export function stretches(hits, length) {
  const within = hits.filter(({ begin, end }) => begin >= 0 && begin < end && end <= length);
  const edges = [...new Set([0, length, ...within.flatMap(({ begin, end }) => [begin, end])])].sort((a, b) => a - b);
  return edges.slice(1).map((end, place) => {
    const begin = edges[place];
    return { begin, end, hits: within.filter((hit) => hit.begin <= begin && hit.end >= end) };
  });
}

const FENCE = /^(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})[ \t]*\n/;

/** The block of code that a text consists of, between its fences; null: it is not only that. */
export function fencedCode(text) {
  const trimmed = text.trim();
  const opened = FENCE.exec(trimmed);
  if (!opened) return null;
  const [whole, fence, language] = opened;
  const code = trimmed.slice(whole.length);
  if (!code.endsWith(fence)) return null;
  const inside = code.slice(0, -fence.length);
  if (inside !== "" && !inside.endsWith("\n")) return null;
  return inside.includes(`\n${fence}`) || inside.startsWith(fence)
    ? null
    : { language, code: inside.replace(/\n$/, "") };
}
