// Data from a server: pages of rows, answers that come late, and errors; commands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { matching } from "../../src/agentv/extensions/view/pages/browser/app/palette.js";
import { ageOf } from "../../src/agentv/extensions/view/pages/browser/app/run_rows.js";
import { Api } from "../../src/agentv/extensions/view/pages/browser/data/api.js";
import { ApiResults, PAGE } from "../../src/agentv/extensions/view/pages/browser/data/api_results.js";

/** Rows that are read when the test says so. */
function reading(total) {
  const waiting = [];
  const read = (from, signal) =>
    new Promise((resolve, reject) => {
      waiting.push({ from, signal, answer: (mark = "") => resolve(page(from, total, mark)), fail: reject });
    });
  return { waiting, read };
}

function page(from, total, mark) {
  const count = Math.max(0, Math.min(PAGE, total - from));
  const cases = Array.from({ length: count }, (_, place) => ({ route: `r${from + place}`, mark }));
  return { cases, total, distinct: total, rate: null, ready: true };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a page is read once it is looked at, and only once", async () => {
  const { waiting, read } = reading(1000);
  const results = new ApiResults(read, () => {});
  assert.ok(results.searching);
  results.need(0, 20);
  assert.equal(waiting.length, 1);
  waiting[0].answer();
  await settled();
  assert.equal(results.total, 1000);
  assert.equal(results.at(700), undefined);
  results.need(690, 712);
  results.need(690, 712);
  assert.deepEqual(
    waiting.map(({ from }) => from),
    [0, 600, 700],
  );
  waiting[2].answer();
  await settled();
  assert.equal(results.at(711).route, "r711");
  assert.equal(results.placeOf("r711"), 711);
});

test("an answer to an earlier question is dropped", async () => {
  const { waiting, read } = reading(10);
  const results = new ApiResults(read, () => {});
  results.refresh();
  assert.ok(waiting[0].signal.aborted);
  waiting[1].answer("new");
  waiting[0].answer("old");
  await settled();
  assert.equal(results.at(3).mark, "new");
});

test("nothing is told of results that nobody wants any more", async () => {
  let told = 0;
  const { waiting, read } = reading(10);
  const results = new ApiResults(read, () => {
    told += 1;
  });
  results.stop();
  waiting[0].answer();
  await settled();
  assert.equal(told, 0);
  assert.equal(results.total, 0);
});

test("an error is kept until it is tried again", async () => {
  const { waiting, read } = reading(10);
  const results = new ApiResults(read, () => {});
  waiting[0].fail(new Error("gone"));
  await settled();
  assert.equal(results.problem.message, "gone");
  results.need(0, 10);
  assert.equal(waiting.length, 1);
  results.retry();
  waiting[1].answer();
  await settled();
  assert.equal(results.problem, null);
  assert.equal(results.at(0).route, "r0");
});

test("rows stay while they are read again, and those that are not looked at are forgotten", async () => {
  const { waiting, read } = reading(300);
  const results = new ApiResults(read, () => {});
  waiting[0].answer("old");
  await settled();
  results.need(200, 220);
  waiting[1].answer("old");
  await settled();
  results.refresh();
  assert.equal(results.at(210).mark, "old");
  assert.equal(results.at(0), undefined);
  waiting[2].answer("new");
  await settled();
  assert.equal(results.at(210).mark, "new");
});

test("whatever an id contains, it is one segment of the address", () => {
  const api = new Api();
  assert.equal(api.address(["runs", "x", "cases", "s/..%2F/t"]), "api/runs/x/cases/s%2F..%252F%2Ft");
  assert.throws(() => api.address(["runs", ".."]), { code: "not-found" });
  assert.equal(
    api.address(["runs"], { q: "a&b", tag: "", id: ["x", "y"], from: 0 }),
    "api/runs?q=a%26b&id=x&id=y&from=0",
  );
});

test("an error of the server has its words, and one that is no JSON its status", async (context) => {
  const answers = [
    new Response('{"error": {"code": "not-found", "message": "No run x."}}', { status: 404 }),
    new Response("<html>Bad gateway", { status: 502 }),
    new Response("<html>", { status: 200 }),
  ];
  context.mock.method(globalThis, "fetch", async () => answers.shift());
  const api = new Api();
  await assert.rejects(api.get(["runs", "x"]), { message: "No run x.", status: 404, code: "not-found" });
  await assert.rejects(api.get(["runs", "x"]), { message: "The server answered 502." });
  await assert.rejects(api.get(["runs", "x"]), { message: "The server answered 200." });
});

test("a server that is gone is named", async (context) => {
  context.mock.method(globalThis, "fetch", async () => {
    throw new TypeError("failed");
  });
  await assert.rejects(new Api().get(["runs"]), { code: "unreachable" });
});

test("a command is found by letters of its words, in any order", () => {
  const commands = [{ label: "Runs" }, { label: "returns", more: "2026-a" }, { label: "Compare two runs" }];
  const found = (typed) => matching(commands, typed).map(({ label }) => label);
  assert.deepEqual(found("runs"), ["Runs", "Compare two runs"]);
  assert.deepEqual(found("RUNS two"), ["Compare two runs"]);
  assert.deepEqual(found("2026-A"), ["returns"]);
  assert.equal(found("").length, 3);
});

test("how long ago a run began is told in the unit that fits", () => {
  const now = Date.parse("2026-03-15T12:00:00Z");
  assert.equal(ageOf("2026-03-15T11:59:30Z", now), "just now");
  assert.equal(ageOf("2026-03-15T11:01:00Z", now), "59 min ago");
  assert.equal(ageOf("2026-03-14T13:00:00Z", now), "23 h ago");
  assert.equal(ageOf("2026-03-05T12:00:00Z", now), "10 d ago");
  assert.equal(ageOf("2026-01-05T12:00:00Z", now), "2026-01-05");
  assert.equal(ageOf("2026-03-15T12:00:05Z", now), "just now");
  assert.equal(ageOf("soon", now), null);
});

/** Streams that a page opened, each with what a server would send. */
function streams(context, hidden = false) {
  const opened = [];
  class Stream extends EventTarget {
    constructor(address) {
      super();
      this.address = address;
      opened.push(this);
    }

    close() {
      this.closed = true;
    }

    send(name, data, lastEventId = "") {
      this.dispatchEvent(Object.assign(new Event(name), { data: JSON.stringify(data), lastEventId }));
    }
  }
  const page = Object.assign(new EventTarget(), { hidden });
  const turn = (away) => {
    page.hidden = away;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  const before = [globalThis.EventSource, globalThis.document];
  Object.assign(globalThis, { EventSource: Stream, document: page });
  context.after(() => Object.assign(globalThis, { EventSource: before[0], document: before[1] }));
  return { opened, turn };
}

test("a hidden tab has no stream, and one that is shown again goes on after the last event", (context) => {
  const { opened, turn } = streams(context);
  const heard = [];
  let missed = 0;
  const end = new Api().listen("api/events?after=c1", { rows: (data) => heard.push(data) }, () => {
    missed += 1;
  });
  opened[0].onopen();
  opened[0].send("rows", "first", "c 2");
  opened[0].send("rows", "second");
  turn(true);
  assert.ok(opened[0].closed);
  turn(false);
  turn(false);
  assert.equal(opened.length, 2);
  assert.equal(opened[1].address, "api/events?after=c+2");
  assert.equal(missed, 0);
  opened[1].onopen();
  opened[1].send("rows", "third", "c3");
  assert.deepEqual([heard, missed], [["first", "second", "third"], 1]);
  end();
  turn(true);
  turn(false);
  assert.equal(opened.length, 2);
});

test("a tab that was opened in the background listens once it is shown, and reads what it missed", (context) => {
  const { opened, turn } = streams(context, true);
  let missed = 0;
  new Api().listen("api/events", {}, () => {
    missed += 1;
  });
  assert.equal(opened.length, 0);
  turn(false);
  opened[0].onopen();
  assert.deepEqual([opened.length, opened[0].address, missed], [1, "api/events", 1]);
});
