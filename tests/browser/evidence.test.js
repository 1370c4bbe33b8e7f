// Stretches of an answer that checks found, and answers that are code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fencedCode, hitsOf, stretches } from "../../src/agentv/reports/html/browser/data/evidence.js";

test("stretches are the text, and overlap where checks found the same place", () => {
  const hits = hitsOf([
    { checks: [{ passed: 1, at: [[2, 6]] }, { passed: 0 }] },
    {
      checks: [
        {
          passed: 0,
          at: [
            [4, 8],
            [20, 30],
          ],
        },
      ],
    },
  ]);
  const found = stretches(hits, 10);
  assert.equal(found.map(({ begin, end }) => "0123456789".slice(begin, end)).join(""), "0123456789");
  assert.deepEqual(
    found.map(({ begin, end, hits: own }) => [begin, end, own.map(({ grade }) => grade)]),
    [
      [0, 2, []],
      [2, 4, [0]],
      [4, 6, [0, 1]],
      [6, 8, [1]],
      [8, 10, []],
    ],
  );
});

test("an answer is code only if nothing is around it", () => {
  assert.deepEqual(fencedCode("```python\nx = 1\n\n```\n"), { language: "python", code: "x = 1\n" });
  assert.deepEqual(fencedCode("```\n```"), { language: "", code: "" });
  for (const text of ["", "x", "```js\nx\n``` and", "```\na\n```\nb\n```\nc\n```", "```js x y\nx\n```", "```a```"])
    assert.equal(fencedCode(text), null, text);
  assert.equal(fencedCode(`\`\`\`${"x".repeat(1_000_000)}`), null);
});
