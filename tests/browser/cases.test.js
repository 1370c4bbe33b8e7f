// Cases: their outcome over samples, their addresses, and the choice of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  casesAndRows,
  countsOfCases,
  distinctCases,
  isFlaky,
  settle,
} from "../../src/agentv/extensions/view/pages/browser/data/cases.js";
import { matchRuns } from "../../src/agentv/extensions/view/pages/browser/data/changes.js";
import {
  choiceFrom,
  choiceText,
  chosenCases,
  emptyChoice,
} from "../../src/agentv/extensions/view/pages/browser/data/choice.js";
import { giveRoutes, routeIn } from "../../src/agentv/extensions/view/pages/browser/data/routes.js";

function oneCase(id, given = {}) {
  const { statuses = ["passed"], scores = [1], ...more } = given;
  const trials = statuses.map((status, place) => ({
    id,
    sample: place + 1,
    status,
    score: scores[place] ?? null,
    duration: 1,
    cost: null,
    assertions: [],
  }));
  const base = { id, suite: "s", target: "t", prompt: null, variant: null, tags: [], sha: "x", early: null };
  return { ...base, status: statuses[0], score: scores[0], trials, base: null, change: null, ...more };
}

test("a case scores the mean of its judged samples and gives the reason of the sample that decided it", () => {
  const one = oneCase("a", { statuses: ["failed", "passed", "errored"], scores: [0, 1, null] });
  one.trials.forEach((trial, place) => {
    trial.teaser = `sample ${place + 1}`;
  });
  one.trials.reverse();
  settle(one);
  assert.equal(one.score, 0.5);
  assert.equal(one.teaser, "sample 1");
  assert.ok(isFlaky(one));
});

test("a case on two targets counts once, by the worse of its rows", () => {
  const rows = [oneCase("a", { target: "x" }), oneCase("a", { target: "y", statuses: ["failed"] })];
  assert.deepEqual(countsOfCases(rows), { passed: 0, failed: 1, errored: 0, skipped: 0, shown: 0 });
  assert.equal(casesAndRows(distinctCases(rows), rows.length), "1 case in 2 rows");
});

test("cases of one name in two files are two, and are matched by their files", () => {
  const both = (first, second) => [
    oneCase("a", { file: 0, path: "a.yaml", statuses: [first] }),
    oneCase("a", { file: 1, path: "b.yaml", statuses: [second] }),
  ];
  const [run, base] = [{ cases: both("passed", "failed") }, { cases: both("failed", "failed").reverse() }];
  assert.equal(distinctCases(run.cases), 2);
  assert.deepEqual(matchRuns(run, base), []);
  assert.deepEqual(
    run.cases.map(({ change }) => change),
    ["better", "same"],
  );
});

test("the order of the files is that of their numbers, then of cases and columns", () => {
  const orders = [
    [1, 1, 0, 0, -1],
    [0, 2, 0, 0, -1],
    [0, 1, 0, 1, -1],
    [0, 1, 0, 0, -1],
  ];
  const cases = orders.map((order, place) => oneCase(`c${place}`, { order }));
  const found = chosenCases({ cases, tables: { assertions: [] } }, { ...emptyChoice(), order: "file" });
  assert.deepEqual(
    found.map(({ id }) => id),
    ["c3", "c2", "c1", "c0"],
  );
});

test("an address leads back to its case, whatever its names contain", () => {
  const names = ["a/b?c#d", "ä é", "..", "%2F", "a~2", "\ud800"];
  const cases = [...names, ...names].map((id) => oneCase(id));
  const routes = giveRoutes(cases);
  assert.equal(routes.size, cases.length);
  for (const one of cases) assert.equal(routeIn(routes, one.route), one);
  assert.equal(routeIn(routes, "s/ä é/t"), cases[1]);
  assert.equal(routeIn(routes, "s/c"), null);
});

test("a choice stands in the address, and an unknown order is the usual one", () => {
  const choice = { ...emptyChoice(), status: "failed errored", q: "a&b=c", order: "slowest" };
  assert.deepEqual(choiceFrom(new URLSearchParams(choiceText(choice))), choice);
  assert.equal(choiceFrom(new URLSearchParams("order=toString")).order, "worst");
  assert.equal(choiceText(emptyChoice()), "");
});

test("filters of different kinds must all hold, and the worst comes first", () => {
  const failed = oneCase("b", { statuses: ["failed"], scores: [0.2], tags: ["slow"] });
  const errored = oneCase("c", { statuses: ["errored"], scores: [null] });
  const run = { cases: [oneCase("a"), errored, failed], tables: { assertions: [] } };
  assert.deepEqual(
    chosenCases(run, emptyChoice()).map(({ id }) => id),
    ["b", "c", "a"],
  );
  assert.deepEqual(chosenCases(run, { ...emptyChoice(), status: "failed errored", tag: "slow" }), [failed]);
});

test("runs are matched by target only where one of them has several", () => {
  const one = { cases: [oneCase("a", { target: "new" }), oneCase("b", { target: "new" })] };
  const other = { cases: [oneCase("a", { target: "old", statuses: ["failed"] }), oneCase("gone", { target: "old" })] };
  const gone = matchRuns(one, other);
  assert.deepEqual(
    one.cases.map(({ change }) => change),
    ["better", "added"],
  );
  assert.deepEqual(
    gone.map(({ id }) => id),
    ["gone"],
  );
});
