// Search in all texts of all cases. A line of data is looked through as it stands; only one that may match is read.

const SLICE_MS = 12;

function termsOf(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map((found) => found[1] ?? found[2]);
}

// How a term looks inside the data: escaped as in reports/text.py.
function written(term) {
  return JSON.stringify(term).slice(1, -1).replaceAll("<", "\\u003c");
}

function holds(value, term) {
  if (typeof value === "string") return value.toLowerCase().includes(term);
  if (value === null || typeof value !== "object") return false;
  return Object.values(value).some((one) => holds(one, term));
}

function trialHolds(trial, term, raw) {
  const { id, suite, target, prompt, variant, tags, teaser } = trial;
  if (holds([id, suite, target, prompt, variant, tags, teaser], term)) return true;
  const line = trial.run.linesOf(trial.chunk)[trial.place];
  return line.toLowerCase().includes(raw) && holds(JSON.parse(line), term);
}

// Calls `found` with the cases so far, now and then, and at the end. Gives a function that stops it.
export function searchCases(cases, query, found) {
  const terms = termsOf(query).map((term) => [term, written(term)]);
  const order = [...cases.keys()].sort((one, other) => cases[one].trials[0].chunk - cases[other].trials[0].chunk);
  const places = [];
  let at = 0;
  let stopped = false;
  const tell = (ended) => {
    found(
      [...places].sort((one, other) => one - other).map((place) => cases[place]),
      ended,
    );
  };
  const go = () => {
    if (stopped) return;
    const until = performance.now() + SLICE_MS;
    for (; at < order.length && performance.now() < until; at += 1) {
      const one = cases[order[at]];
      if (terms.every(([term, raw]) => one.trials.some((trial) => trialHolds(trial, term, raw))))
        places.push(order[at]);
    }
    tell(at === order.length);
    if (at < order.length) setTimeout(go);
  };
  go();
  return () => {
    stopped = true;
  };
}
