// What differs between two texts: lines aligned by Myers' algorithm, words inside lines that changed.
// Source: E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986), 251–266.

const MOST_EDITS = 1200;
const MOST_LINES = 20_000;
const MOST_WORDS = 3000;
const LITTLE = 0.35;

// Runs of [kind, one, other]: kind "same", "removed" or "added", the rest lists. Null where too much differs.
function differences(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (
    end < one.length - start &&
    end < other.length - start &&
    one[one.length - 1 - end] === other[other.length - 1 - end]
  )
    end += 1;
  const path = shortest(one.slice(start, one.length - end), other.slice(start, other.length - end));
  if (path === null) return null;
  const same = (items) => items.map((item) => ["same", item]);
  return [...same(one.slice(0, start)), ...path, ...same(one.slice(one.length - end))];
}

function shortest(one, other) {
  const most = Math.min(one.length + other.length, MOST_EDITS);
  const reach = new Int32Array(2 * most + 3);
  const steps = [];
  for (let edits = 0; edits <= most; edits += 1) {
    steps.push(reach.slice(most + 1 - edits - 1, most + 1 + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const at = most + 1 + diagonal;
      const down = diagonal === -edits || (diagonal !== edits && reach[at - 1] < reach[at + 1]);
      let x = down ? reach[at + 1] : reach[at - 1] + 1;
      while (x < one.length && x - diagonal < other.length && one[x] === other[x - diagonal]) x += 1;
      reach[at] = x;
      if (x >= one.length && x - diagonal >= other.length) return walked(one, other, steps, diagonal);
    }
  }
  return null;
}

function walked(one, other, steps, last) {
  const path = [];
  let x = one.length;
  let y = other.length;
  let diagonal = last;
  for (let edits = steps.length - 1; edits >= 0; edits -= 1) {
    const before = (of) => steps[edits][of + edits + 1];
    const down = diagonal === -edits || (diagonal !== edits && before(diagonal - 1) < before(diagonal + 1));
    const from = edits === 0 ? 0 : before(down ? diagonal + 1 : diagonal - 1);
    const begun = edits === 0 ? 0 : down ? from : from + 1;
    while (x > begun) {
      x -= 1;
      y -= 1;
      path.push(["same", one[x]]);
    }
    if (edits === 0) break;
    if (down) {
      y -= 1;
      path.push(["added", other[y]]);
    } else {
      x -= 1;
      path.push(["removed", one[x]]);
    }
    diagonal += down ? 1 : -1;
  }
  return path.reverse();
}

// Rows of [left, right] lines; null on the side where there is none.
export function alignedLines(one, other) {
  const lines = [one.split("\n"), other.split("\n")];
  const found = lines[0].length + lines[1].length > MOST_LINES ? null : differences(...lines);
  if (found === null) return null;
  const rows = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      rows.push({ left: removed[at] ?? null, right: added[at] ?? null, changed: true });
    removed = [];
    added = [];
  };
  for (const [kind, line] of found) {
    if (kind === "removed") removed.push(line);
    else if (kind === "added") added.push(line);
    else {
      flush();
      rows.push({ left: line, right: line, changed: false });
    }
  }
  flush();
  return rows;
}

const WORDS = /\p{L}[\p{L}\p{M}\p{N}_]*|\p{N}+|\s+|./gsu;

// The words of both lines, marked where they differ; nothing marked where the lines have little in common.
export function markedWords(left, right) {
  const words = [left.match(WORDS) ?? [], right.match(WORDS) ?? []];
  const found = words[0].length + words[1].length > MOST_WORDS ? null : differences(...words);
  const shared = (found ?? []).reduce((length, [kind, word]) => length + (kind === "same" ? word.trim().length : 0), 0);
  if (found === null || shared < LITTLE * Math.min(left.length, right.length))
    return [[["same", left]], [["same", right]]];
  const side = (kind) => joined(found.filter((part) => part[0] === "same" || part[0] === kind));
  return [side("removed"), side("added")];
}

// One run for neighbours of a kind; white space between two changes belongs to them.
function joined(parts) {
  const runs = [];
  parts.forEach(([kind, text], place) => {
    const last = runs.at(-1);
    const between = kind === "same" && !text.trim() && last && last[0] !== "same" && parts[place + 1]?.[0] === last[0];
    if (last && (last[0] === kind || between)) last[1] += text;
    else runs.push([kind, text]);
  });
  return runs;
}
