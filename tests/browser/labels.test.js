// Labels and judges: keys, addresses, and where a disagreement leads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { measuresOf, shareWords } from "../../src/agentv/extensions/view/pages/browser/judge/checked.js";
import { caseAddress } from "../../src/agentv/extensions/view/pages/browser/judge/disagreements.js";
import { drawIn, labelAddress } from "../../src/agentv/extensions/view/pages/browser/label/draw.js";
import { choiceOf } from "../../src/agentv/extensions/view/pages/browser/label/keys.js";

test("digits and letters are verdicts", () => {
  for (const key of ["1", "p"]) assert.equal(choiceOf(key).verdict, "pass");
  for (const key of ["0", "f"]) assert.equal(choiceOf(key).verdict, "fail");
  assert.equal(choiceOf("u").verdict, "unsure");
  for (const key of ["2", "x"]) assert.equal(choiceOf(key), undefined);
});

test("an address says what is drawn, and nothing that is usual", () => {
  const draw = { run: "a b", assertion: "kind & polite", sample: 7, seed: -3 };
  assert.deepEqual(drawIn(new URLSearchParams(labelAddress(draw, "x").split("?")[1])), draw);
  assert.equal(labelAddress({ run: "r", assertion: "", sample: 60, seed: 0 }), "#/label?run=r");
  assert.deepEqual(drawIn(new URLSearchParams("sample=0&seed=1e9")), { run: "", assertion: "", sample: 1, seed: 0 });
});

test("a disagreement leads to its case, whatever it is called", () => {
  const one = { run: "r/1", suite: "s", case: "..", target: "a/b", prompt: null, variant: "v" };
  assert.equal(caseAddress(one), "#/run/r%2F1/case/s/../a%2Fb/v");
  assert.equal(caseAddress({ ...one, target: null }), "#/run/r%2F1/cases?q=..");
});

test("what cannot be estimated is said so", () => {
  assert.deepEqual(measuresOf({ accuracy: null }), []);
  const found = { value: 0.5, interval: [0.25, 0.75] };
  const lines = measuresOf({ accuracy: found, tpr: found, tnr: null, kappa: null });
  assert.equal(lines[0][1], shareWords(found));
  assert.equal(lines[1][1], "cannot be estimated: no labelled answer fails");
  assert.match(lines[3][1], /^undefined/);
});
