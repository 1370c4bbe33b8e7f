// Rates by clusters: the same function as agentv/stats/design_effect.py, for the cases that somebody chose in the page.

import { distinctCases, passedSamples } from "./cases.js";
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

// Sums: of each cluster how many samples were judged, and how many of them passed.
function estimatedRate(sums) {
  const found = sums.filter(([size]) => size > 0);
  const judged = found.reduce((all, [size]) => all + size, 0);
  if (!judged) return null;
  const mean = found.reduce((all, [, total]) => all + total, 0) / judged;
  const known = { rate: mean, judged, clusters: found.length };
  if (found.length === judged) return { ...known, interval: intervalAt(mean, judged) };
  if (found.length === 1) return { ...known, interval: null };
  const [variance, freedom] = robust(found, mean, judged);
  const alone = (mean * (1 - mean)) / (judged - 1);
  const shown = alone > 0 ? Math.max(1, variance / alone) : 1;
  const largest = found.reduce((all, [size]) => all + size * size, 0) / judged;
  const telling = Math.min(
    found.filter(([, total]) => total > 0).length,
    found.filter(([size, total]) => total < size).length,
  );
  const effect = shown + (Math.max(0, largest - shown) * DRAWN) / (DRAWN + telling);
  const few = Math.min(1, (studentQuantile(judged - 1) / studentQuantile(freedom)) ** 2);
  return { ...known, interval: intervalAt(mean, (judged / effect) * few) };
}

// The mean of values in 0..1 that are no rate, out of the sums of clusters and the sum of the squares of all values.
function estimatedMean(sums, squares) {
  const found = sums.filter(([size]) => size > 0);
  const judged = found.reduce((all, [size]) => all + size, 0);
  if (!judged) return null;
  const total = found.reduce((all, [, each]) => all + each, 0);
  const mean = Math.min(1, Math.max(0, total / judged));
  if (mean === 0 || mean === 1 || Math.abs(squares - total) <= SAME * Math.max(1, total))
    return estimatedRate(found.map(([size, each]) => [size, Math.round(each)]));
  const known = { rate: mean, judged, clusters: found.length };
  if (found.length === 1) return { ...known, interval: null };
  if (Math.abs(squares * judged - total * total) <= SAME * Math.max(1, total * total)) {
    const unseen = 1 - 0.025 ** (1 / found.length);
    return { ...known, interval: [mean - unseen * mean, mean + unseen * (1 - mean)] };
  }
  const [shown, freedom] = robust(found, mean, judged);
  const largest = ((mean * (1 - mean)) / (judged - 1)) * (found.reduce((all, [size]) => all + size * size, 0) / judged);
  const variance = (shown * found.length + largest * DRAWN) / (found.length + DRAWN);
  return {
    ...known,
    interval: intervalAt(mean, ((mean * (1 - mean)) / variance) * (Z95 / studentQuantile(freedom)) ** 2),
  };
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
  return trial.cluster < 0 ? JSON.stringify([trial.suite, trial.id]) : trial.cluster;
}

function clusteredBy(trial) {
  return trial.cluster < 0 ? "case" : trial.run.tables.clusters[trial.cluster];
}

// The mean of the pass rates of cases, where samples may end early: no share of the cases that passed.
export const EARLY = "rates of judged cases";

// Counts what was judged, by clusters: each as 1 or 0, or by a rate of its own.
export class ClusterSums {
  constructor() {
    this.sums = new Map();
    this.by = new Set();
    this.passed = 0;
    this.squares = 0;
    this.judged = 0;
    this.errored = 0;
    this.cut = null;
  }

  add(trial, status, value = Number(status === "passed")) {
    this.cut ??= trial.run.summary?.cut ?? null;
    if (status === "errored") this.errored += 1;
    if (!isJudged(status)) return;
    const key = clusterOf(trial);
    const found = this.sums.get(key) ?? [0, 0];
    found[0] += 1;
    found[1] += value;
    this.sums.set(key, found);
    this.by.add(clusteredBy(trial));
    this.judged += 1;
    this.passed += value;
    this.squares += value * value;
  }

  /**
   * @param {string} of what is counted
   * @param {(sums: [number, number][], squares: number) => any} estimated
   */
  rate(of = "judged", estimated = estimatedRate) {
    const found = estimated([...this.sums.values()], this.squares);
    const all = this.judged + this.errored;
    if (!found) return null;
    const bounds = [this.passed / all, (this.passed + this.errored) / all];
    return {
      ...found,
      interval: this.cut ? null : found.interval,
      of,
      by: [...this.by].sort(),
      errored: this.errored,
      bounds,
      cut: this.cut,
    };
  }
}

// The rate of judged samples. Where samples of some cases could end early, their share leans to where they ended, so that
// it is the mean of the cases' rates, each without that bias.
export function rateOfCases(cases) {
  const early = cases.some((one) => one.early);
  const several = cases.some((one) => one.trials[0].repeat > 1);
  const sums = new ClusterSums();
  for (const one of cases) {
    if (early) sums.add(one.trials[0], one.status, one.early?.rate ?? shareOfSamples(one));
    else for (const trial of one.trials) sums.add(trial, trial.status);
  }
  if (early) return sums.rate(EARLY, estimatedMean);
  return sums.rate(several ? "judged sample" : distinctCases(cases) < cases.length ? "judged trial" : "judged case");
}

function shareOfSamples(one) {
  const judged = one.trials.filter((trial) => isJudged(trial.status)).length;
  return judged ? passedSamples(one) / judged : 0;
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
