// The line that is drawn through runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fittedEnds, stretchesOf } from "../../src/agentv/reports/html/browser/trend/trend_drawing.js";

test("the line begins at the first run that shares cases, and stays on the axis", () => {
  const runs = [{}, {}, {}, {}];
  const theil_sen = { slope: 0.5, start: 0.25 };
  assert.deepEqual(fittedEnds({ runs, theil_sen, runs_left_out: 1 }), [
    [1, 0.25],
    [3, 1],
  ]);
  assert.equal(fittedEnds({ runs, theil_sen: null, runs_left_out: 0 }), null);
  assert.equal(fittedEnds({ runs, theil_sen, runs_left_out: 3 }), null);
});

test("a line of a target is interrupted by runs that it was not part of", () => {
  assert.deepEqual(stretchesOf([null, 0, 0.5, null, 1]), [
    [
      [1, 0],
      [2, 0.5],
    ],
    [[4, 1]],
  ]);
  assert.deepEqual(stretchesOf([null]), []);
});
