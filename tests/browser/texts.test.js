// Numbers and texts as people read them, and what differs between two texts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { alignedLines, markedWords } from "../../src/agentv/extensions/view/pages/browser/data/differences.js";
import { apart, duration, fixed, money, percent } from "../../src/agentv/extensions/view/pages/browser/data/numbers.js";
import { partEnd, plainly, prettyJson, shortened } from "../../src/agentv/extensions/view/pages/browser/data/texts.js";

test("halves are rounded to the even number, as Python does", () => {
  assert.deepEqual(
    [0.125, 0.375, 0.5, 2.5].map((value) => fixed(value, 2)),
    ["0.12", "0.38", "0.50", "2.50"],
  );
  assert.equal(fixed(12.25, 1), "12.2");
});

test("a share is 100% only if nothing is missing", () => {
  assert.equal(percent(1), "100.0%");
  assert.equal(percent(0.9999), "99.99%");
  assert.equal(percent(0.00001), "0.001%");
});

test("two numbers that differ look different", () => {
  assert.deepEqual(apart(0.79999, 0.8), ["0.79999", "0.80000"]);
});

test("times and costs have units that fit", () => {
  assert.deepEqual([999, 1500, 59_960, 3_600_000].map(duration), ["999 ms", "1.5 s", "1 min 00 s", "1 h 00 min"]);
  assert.deepEqual([0, 0.00001, 0.0123, 12.345].map(money), ["$0.00", "<$0.0001", "$0.0123", "$12.35"]);
});

test("characters that steer the display are spelled out", () => {
  assert.equal(plainly("a\u202eb\u0007\ud800"), "aU+202EbU+0007U+D800");
  assert.equal(plainly("tab\tand\r\nline"), "tab\tand\r\nline");
});

test("a part of a text never tears a pair of surrogates", () => {
  assert.equal(partEnd("ab😀cd", 0, 3), 4);
  assert.equal(partEnd("ab😀cd", 0, 2), 2);
  assert.equal(shortened("abcdef", 4), "abc…");
});

test("only objects and lists are formatted as JSON", () => {
  assert.equal(prettyJson('{"a":1}'), '{\n  "a": 1\n}');
  for (const text of ["12", '"a"', "{broken", "[1, 2"]) assert.equal(prettyJson(text), null);
});

test("lines are aligned, and words marked inside those that changed", () => {
  const rows = alignedLines("one\ntwo\nthree", "one\n2\nthree");
  assert.deepEqual(
    rows.map(({ changed }) => changed),
    [false, true, false],
  );
  assert.deepEqual(markedWords("refund in 30 days", "refund in 14 days"), [
    [
      ["same", "refund in "],
      ["removed", "30"],
      ["same", " days"],
    ],
    [
      ["same", "refund in "],
      ["added", "14"],
      ["same", " days"],
    ],
  ]);
});
