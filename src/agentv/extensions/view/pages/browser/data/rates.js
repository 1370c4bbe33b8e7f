// Rates by clusters: the same function as agentv/stats/intervals/design_effect.py, for the cases that somebody chose in the page.

import { caseKey, distinctCases, passedSamples } from "./cases.js";
import { count, percent, Z95 } from "./numbers.js";
import { isJudged } from "./statuses.js";
import { plainly } from "./texts.js";

const DRAWN = 0.5;
const NEARLY_NORMAL = 400;
const SAME = 1e-9;

// Wilson's score interval of a share that is as sure as that of so many independent trials.
export function intervalAt(share, effective) {
  const square = Z95 * Z95;
  const scale = 1 + square / effective;
  const centre = (share + square / (2 * effective)) / scale;
  const reach = (Z95 * Math.sqrt((share * (1 - share)) / effective + square / (4 * effective * effective))) / scale;
  return [share <= 0 ? 0 : Math.max(0, centre - reach), share >= 1 ? 1 : Math.min(1, centre + reach)];
}

// Sums: of each cluster how many cases were judged, and the sum of their rates. `samples`: of a case, their harmonic mean.
function estimatedRate(sums, samples = 1) {
  const { observed, mean, known } = observedIn(sums);
  if (!observed) return null;
  const judged = observed * samples;
  if (sums.length === judged) return { ...known, interval: intervalAt(mean, judged) };
  if (sums.length === 1) return { ...known, interval: null };
  const [variance, freedom] = robust(sums, mean, observed);
  const alone = (mean * (1 - mean)) / (judged - 1);
  const shown = alone > 0 ? Math.max(1, variance / alone) : 1;
  const largest = (sums.reduce((all, [size]) => all + size * size, 0) / observed) * samples;
  const telling = Math.min(
    sums.filter(([, total]) => total > 0).length,
    sums.filter(([size, total]) => total < size).length,
  );
  const effect = shown + (Math.max(0, largest - shown) * DRAWN) / (DRAWN + telling);
  const few = Math.min(1, (studentQuantile(judged - 1) / studentQuantile(freedom)) ** 2);
  return { ...known, interval: intervalAt(mean, (judged / effect) * few) };
}

// The mean of values in 0..1 that are no rate, out of the sums of clusters.
function estimatedMean(sums) {
  if (sums.every(([size, total]) => size === 1 && (total === 0 || total === 1))) return estimatedRate(sums);
  const { observed, mean, known } = observedIn(sums);
  if (sums.length === 1) return { ...known, interval: null };
  const unseen = sums.reduce((all, [size]) => all + size * size, 0) / observed;
  const kinds = kindsOf(sums);
  const turned = kinds.map(([size, total, number]) => [size, size - total, number]);
  return { ...known, interval: [lowerEnd(kinds, unseen, mean), 1 - lowerEnd(turned, unseen, 1 - mean)] };
}

// Clusters that are alike, and how many there are.
function kindsOf(sums) {
  const numbers = new Map();
  for (const one of sums) numbers.set(String(one), (numbers.get(String(one)) ?? 0) + 1);
  return [...numbers].sort().map(([kind, number]) => [...kind.split(",").map(Number), number]);
}

function observedIn(sums) {
  const observed = sums.reduce((all, [size]) => all + size, 0);
  const mean = Math.min(1, Math.max(0, sums.reduce((all, [, total]) => all + total, 0) / observed));
  return { observed, mean, known: { rate: mean, clusters: sums.length } };
}

// The lower end of the interval of a mean of scores: agentv/stats/intervals/means.py.
function lowerEnd(kinds, unseen, mean) {
  if (mean <= SAME) return 0;
  const counts = [...kinds.map(([, , number]) => number), 1];
  let [low, high] = [0, mean];
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    const values = [...kinds.map(([size, total]) => total - middle * size), -middle * unseen];
    if (notAbove(values, counts) < -Z95) low = middle;
    else high = middle;
  }
  return low;
}

// The normal quantile of the chance that the sum of values, each times a gamma variable of its count, is at most 0.
function notAbove(values, counts) {
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  if (lowest >= 0 || highest <= 0) return lowest >= 0 ? -Infinity : Infinity;
  let [left, right, point] = [1 / lowest, 1 / highest, 0];
  for (let step = 0; step < 60; step += 1) {
    const parts = values.map((value) => value / (1 - point * value));
    const slope = parts.reduce((all, part, place) => all + counts[place] * part, 0);
    [left, right] = slope < 0 ? [point, right] : [left, point];
    let found = point - slope / parts.reduce((all, part, place) => all + counts[place] * part * part, 0);
    if (found <= left || found >= right) found = (left + right) / 2;
    const settled = Math.abs(found - point) <= 1e-7 * Math.abs(found);
    point = found;
    if (settled) break;
  }
  const curve = values.reduce((all, value, place) => all + counts[place] * (value / (1 - point * value)) ** 2, 0);
  const height = values.reduce((all, value, place) => all + counts[place] * Math.log(1 - point * value), 0);
  const root = Math.sign(point) * Math.sqrt(Math.max(0, 2 * height));
  return Math.abs(root) < 1e-4 ? 0 : root + Math.log((point * Math.sqrt(curve)) / root) / root;
}

// The cluster-robust variance CR2 of a mean, and Satterthwaite's degrees of freedom: agentv/stats/clustered.py.
function robust(clusters, mean, count) {
  let summed = 0,
    leverage = 0,
    leverages = 0,
    sizes = 0;
  for (const [size, total] of clusters) {
    const rest = 1 - size / count;
    const each = (size * size) / rest;
    summed += (total - mean * size) ** 2 / rest;
    leverage += each;
    leverages += each * each;
    sizes += size * size;
  }
  return [summed / count ** 2, 1 / count ** 2 / (sizes / count ** 4 + (leverage ** 2 - leverages) / count ** 6)];
}

// The quantile of Student's t at 95%: agentv/stats/student.py.
function studentQuantile(freedom) {
  if (freedom >= NEARLY_NORMAL) return expanded(freedom);
  let low = 0,
    high = 1;
  while (studentTails(high, freedom) > 0.05) [low, high] = [high, high * 4];
  for (let step = 0; step < 100 && high - low > 1e-13 * high; step += 1) {
    const middle = (low + high) / 2;
    if (studentTails(middle, freedom) > 0.05) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function expanded(freedom) {
  const square = Z95 * Z95;
  const terms = [
    (square + 1) / 4,
    ((5 * square + 16) * square + 3) / 96,
    (((3 * square + 19) * square + 17) * square - 15) / 384,
    ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
  ];
  return Z95 * terms.reduce((all, term, place) => all + term / freedom ** (place + 1), 1);
}

function studentTails(value, freedom) {
  const square = value * value;
  return incompleteBeta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square));
}

function incompleteBeta(a, b, x, rest) {
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(rest));
  return x < (a + 1) / (a + b + 2)
    ? (front * continuedFraction(a, b, x)) / a
    : 1 - (front * continuedFraction(b, a, rest)) / b;
}

function continuedFraction(a, b, x) {
  let upper = 1,
    lower = 1 / (1 - ((a + b) * x) / (a + 1)),
    found = lower;
  for (let step = 1; step < 10000; step += 1) {
    const even = (step * (b - step) * x) / ((a + 2 * step - 1) * (a + 2 * step));
    const odd = (-(a + step) * (a + b + step) * x) / ((a + 2 * step) * (a + 2 * step + 1));
    let change = 1;
    for (const term of [even, odd]) {
      lower = 1 / (1 + term * lower || 1e-300);
      upper = 1 + term / upper || 1e-300;
      change = lower * upper;
      found *= change;
    }
    if (Math.abs(change - 1) < 1e-15) break;
  }
  return found;
}

// Stirling's series, far enough out; DLMF 5.11.1.
function logGamma(value) {
  let shift = 0,
    x = value;
  for (; x < 15; x += 1) shift += Math.log(x);
  const inverse = 1 / (x * x);
  const series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / x;
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series - shift;
}

// What trials have in common that are not independent; its number is given where it is not the case itself.
function clusterOf(trial) {
  return trial.cluster < 0 ? caseKey(trial) : trial.cluster;
}

function clusteredBy(trial) {
  return trial.cluster < 0 ? "case" : trial.run.tables.clusters[trial.cluster];
}

// What a rate is of, where it is the mean of the rates of cases: no share of what is counted.
export const EARLY = "rates of judged cases";
const SAMPLES = "judged sample";

/** `of 12 judged cases passed`, `over 60 judged samples`. */
export function countedWords({ of, judged }) {
  if (of === EARLY) return `over ${count(judged, "judged case")}`;
  return of === SAMPLES ? `over ${count(judged, of)}` : `of ${count(judged, of)} passed`;
}

export function isShare({ of }) {
  return of !== EARLY && of !== SAMPLES;
}

// Counts what was judged, by clusters: cases with their rates, or grades as 1 or 0.
export class ClusterSums {
  constructor() {
    this.sums = new Map();
    this.by = new Set();
    this.judged = 0;
    this.errored = 0;
    this.inverse = 0;
    this.possible = 0;
    this.bounds = [0, 0];
    this.cut = null;
  }

  /** One grade of a trial. */
  add(trial, status) {
    this.count(trial, Number(isJudged(status)), Number(status === "passed"), Number(status === "errored"));
  }

  /** A case, by its numbers of samples. */
  count(trial, judged, passed, errored) {
    this.cut ??= trial.run.summary?.cut ?? null;
    this.errored += errored;
    if (judged + errored) {
      this.possible += 1;
      this.bounds[0] += passed / (judged + errored);
      this.bounds[1] += (passed + errored) / (judged + errored);
    }
    if (!judged) return;
    const key = clusterOf(trial);
    const found = this.sums.get(key) ?? [0, 0];
    found[0] += 1;
    found[1] += passed / judged;
    this.sums.set(key, found);
    this.by.add(clusteredBy(trial));
    this.judged += judged;
    this.inverse += 1 / judged;
  }

  /**
   * @param {string} of what is counted
   * @param {(sums: [number, number][], samples: number) => any} estimated
   */
  rate(of = "judged", estimated = estimatedRate) {
    if (!this.judged) return null;
    const sums = [...this.sums.values()].map(([size, total]) => [size, settled(total)]);
    const cases = sums.reduce((all, [size]) => all + size, 0);
    const found = estimated(/** @type {[number, number][]} */ (sums), cases / settled(this.inverse));
    return {
      ...found,
      judged: this.judged,
      interval: this.cut ? null : found.interval,
      of,
      by: [...this.by].sort(),
      errored: this.errored,
      bounds: this.bounds.map((one) => settled(one) / this.possible),
      cut: this.cut,
    };
  }
}

// A sum without the rounding that depends on the order.
function settled(total) {
  return Math.round(total * 1e12) / 1e12;
}

// The mean of the cases' rates. Where samples could end early, their share leans to where they ended: of such cases only
// those that are decided count, each with an unbiased rate.
export function rateOfCases(cases) {
  const early = cases.some((one) => one.early);
  const several = cases.some((one) => one.trials[0].repeat > 1);
  const sums = new ClusterSums();
  for (const one of cases) {
    const [trial] = one.trials;
    const judged = one.trials.filter(({ status }) => isJudged(status)).length;
    const passed = passedSamples(one);
    if (one.early && isJudged(one.status)) sums.count(trial, 1, one.early.rate ?? passed / judged, 0);
    else if (one.early) sums.count(trial, 0, 0, Number(one.status === "errored"));
    else sums.count(trial, judged, passed, one.trials.filter(({ status }) => status === "errored").length);
  }
  if (early) return sums.rate(EARLY, estimatedMean);
  return sums.rate(several ? SAMPLES : distinctCases(cases) < cases.length ? "judged trial" : "judged case");
}

export const CUTS = {
  "fail-fast": "the run was stopped by --fail-fast",
  "max-errors": "the run was stopped by --max-errors",
  decided: "the run stopped when its comparison was decided",
};

// `95% CI 35.0% to 91.0%, 10 conversations; 60.0% if all 12 errored had failed`.
export function certainty(rate) {
  const alone = rate.clusters === rate.judged && rate.by.every((key) => key === "case");
  const counted = alone ? "" : clusterWords(rate.clusters, rate.by);
  if (rate.cut) return `no confidence interval: ${CUTS[rate.cut]}${ifFailed(rate)}`;
  const sure = rate.interval
    ? `95% CI ${percent(rate.interval[0])} to ${percent(rate.interval[1])}${counted ? `, ${counted}` : ""}`
    : `no confidence interval: ${counted || "1 cluster"} only`;
  return `${sure}${ifFailed(rate)}`;
}

function clusterWords(number, by) {
  if (by.length !== 1) return count(number, "cluster");
  if (by[0] === "case" || by[0] === "conversation_id") return count(number, by[0] === "case" ? "case" : "conversation");
  return `${count(number, "cluster")} by '${plainly(by[0])}'`;
}

// A case may be sure to fail whatever its errored samples had come to: then the rate of the others is above both bounds.
export function ifFailed({ rate, bounds, errored }) {
  if (!errored || !bounds) return "";
  if (bounds[1] < rate - SAME) {
    const range = bounds[0] === bounds[1] ? percent(bounds[0]) : `${percent(bounds[0])} to ${percent(bounds[1])}`;
    return `; ${range} whatever the result of ${errored === 1 ? "the errored one" : `the ${errored.toLocaleString("en")} errored`}`;
  }
  if (bounds[0] === bounds[1]) return "";
  return `; ${percent(bounds[0])} if ${errored === 1 ? "the errored one" : `all ${errored.toLocaleString("en")} errored`} had failed`;
}
