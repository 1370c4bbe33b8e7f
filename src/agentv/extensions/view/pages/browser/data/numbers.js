// Numbers as people read them.

import { plainly } from "./texts.js";

export const Z95 = 1.9599639845400536;

// With so many places; a number just between two is rounded to the even one, as Python does in all other views.
export function fixed(value, places) {
  const halves = value * 2 ** (places + 1);
  if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(places);
  const scaled = value * 10 ** places;
  const below = Math.floor(scaled);
  return ((below % 2 ? below + 1 : below) / 10 ** places).toFixed(places);
}

// A difference with its sign; what rounds to nothing has none.
export function signed(value, places) {
  const said = fixed(value, places);
  return Number(said) === 0 ? said.replace("-", "") : `${value > 0 ? "+" : ""}${said}`;
}

export function percent(share) {
  for (let places = 1; places < 9; places += 1) {
    const said = fixed(share * 100, places);
    if (share <= 1e-9 || share >= 1 - 1e-9 || (Number(said) !== 0 && Number(said) !== 100)) return `${said}%`;
  }
  return `${fixed(share * 100, 1)}%`;
}

export function score(value) {
  return value === null || value === undefined ? "–" : fixed(value, 2);
}

// Both with as many places as it takes to tell them apart.
export function apart(one, other) {
  for (let places = 2; places < 12; places += 1)
    if (one.toFixed(places) !== other.toFixed(places)) return [one.toFixed(places), other.toFixed(places)];
  return [one.toFixed(2), other.toFixed(2)];
}

export function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

/** `1 of 12 cases`: how much of its suites a partial run is of. */
export function partWords({ cases, of, trials, of_trials: ofTrials }) {
  const [some, all, what] = cases < of ? [cases, of, "case"] : [trials, ofTrials, "trial"];
  return `${some.toLocaleString("en")} of ${count(all, what)}`;
}

export function money(usd) {
  if (usd > 0 && usd < 0.0001) return "<$0.0001";
  return `$${usd.toFixed(usd >= 10 || usd === 0 ? 2 : 4)}`;
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.round(seconds) % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function tokens(usage) {
  if (!usage) return null;
  if (usage.input === undefined && usage.output === undefined)
    return usage.total === undefined ? null : `${usage.total.toLocaleString("en")} in all`;
  const cached = usage.cached ? ` (${usage.cached.toLocaleString("en")} cached)` : "";
  const thought = usage.reasoning ? ` (${usage.reasoning.toLocaleString("en")} reasoning)` : "";
  return `${(usage.input ?? 0).toLocaleString("en")} in${cached}, ${(usage.output ?? 0).toLocaleString("en")} out${thought}`;
}

export function moment(written) {
  const when = new Date(written ?? "");
  if (Number.isNaN(when.getTime())) return plainly(String(written ?? ""));
  return `${when.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
