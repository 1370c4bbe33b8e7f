// Numbers as people read them, and the interval of a share.

const Z95 = 1.9599639845400536;

// Wilson's score interval, as in agentv/stats/proportion.py; of trials that hang together as of fewer that do not.
function wilson(successes, trials, independent = trials) {
  if (!trials) return null;
  const share = successes / trials;
  const square = Z95 * Z95;
  const scale = 1 + square / independent;
  const centre = (share + square / (2 * independent)) / scale;
  const reach = (Z95 * Math.sqrt((share * (1 - share)) / independent + square / (4 * independent * independent))) / scale;
  return [successes === 0 ? 0 : Math.max(0, centre - reach), successes === trials ? 1 : Math.min(1, centre + reach)];
}

// How many judged cases there are if each counts once, on however many targets, with however many prompts, in however many
// samples it was run: as in agentv/store/summary.py.
class CountedOnce {
  constructor() {
    this.suites = new Map();
  }

  add({ suite, target, prompt }, sample = 1) {
    const places = this.suites.get(suite) ?? new Map();
    this.suites.set(suite, places);
    const place = JSON.stringify([target, sample]);
    const prompts = places.get(place) ?? new Map();
    places.set(place, prompts);
    prompts.set(prompt, (prompts.get(prompt) ?? 0) + 1);
  }

  number() {
    let summed = 0;
    for (const places of this.suites.values()) {
      let most = 0;
      for (const prompts of places.values()) {
        let prompted = 0;
        for (const [prompt, number] of prompts) if (prompt !== null) prompted = Math.max(prompted, number);
        most = Math.max(most, (prompts.get(null) ?? 0) + prompted);
      }
      summed += most;
    }
    return summed;
  }
}

function percent(share) {
  for (let places = 1; places < 9; places += 1) {
    const said = (share * 100).toFixed(places);
    if (share <= 1e-9 || share >= 1 - 1e-9 || (Number(said) !== 0 && Number(said) !== 100)) return `${said}\u00a0%`;
  }
  return `${(share * 100).toFixed(1)}\u00a0%`;
}

function score(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

// Both with as many places as it takes to tell them apart.
function apart(one, other) {
  for (let places = 2; places < 12; places += 1)
    if (one.toFixed(places) !== other.toFixed(places)) return [one.toFixed(places), other.toFixed(places)];
  return [one.toFixed(2), other.toFixed(2)];
}

function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

function money(usd) {
  if (usd > 0 && usd < 0.0001) return "<$0.0001";
  return `$${usd.toFixed(usd >= 10 || usd === 0 ? 2 : 4)}`;
}

function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.round(seconds) % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function tokens(usage) {
  if (!usage) return null;
  if (usage.input === undefined && usage.output === undefined)
    return usage.total === undefined ? null : `${usage.total.toLocaleString("en")} in all`;
  const cached = usage.cached ? ` (${usage.cached.toLocaleString("en")} cached)` : "";
  const thought = usage.reasoning ? ` (${usage.reasoning.toLocaleString("en")} reasoning)` : "";
  return `${(usage.input ?? 0).toLocaleString("en")} in${cached}, ${(usage.output ?? 0).toLocaleString("en")} out${thought}`;
}

function moment(written) {
  const when = new Date(written ?? "");
  if (Number.isNaN(when.getTime())) return plainly(String(written ?? ""));
  return `${when.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
