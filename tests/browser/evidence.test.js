// Stretches of an answer that checks found, and answers that are code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fencedCode, hitsOf, stretches } from "../../src/agentv/extensions/view/pages/browser/data/evidence.js";
import { laidOutJson } from "../../src/agentv/extensions/view/pages/browser/data/laid_out_json.js";

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

test("places of JSON are found in it with line breaks, or it is left as it is", () => {
  const text = '{"a":{"b, c":[12,"1 \\"2: {"],"d":[]}, "e" : -1}';
  const laid = laidOutJson(text);
  assert.equal(laid.text, JSON.stringify(JSON.parse(text), null, 2));
  for (const part of ["12", '"1 \\"2: {"', "-1", '"d"', "c"]) {
    const begin = text.indexOf(part);
    assert.equal(laid.text.slice(laid.placeOf(begin), laid.placeOf(begin + part.length - 1) + 1), part);
  }
  for (const other of ["{", "12", '{"a": 1, "a": 1}', "[1.0]", '["\\u0041"]', '{"2": 1, "1": 2}'])
    assert.equal(laidOutJson(other), null, other);
});
