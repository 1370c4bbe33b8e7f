// Facts about a run, and lists of facts.

import { duration, moment, money, score, tokens } from "../data/numbers.js";
import { element, section } from "../dom/elements.js";
import { inline } from "../dom/text.js";

export function about(run) {
  const { facts, summary } = run;
  const settings = facts.settings ?? {};
  const rows = Object.values(run.counts.rows).reduce((total, number) => total + number, 0);
  const costs = [summary?.cost_usd, summary?.judge_cost_usd, summary?.user_cost_usd].filter((cost) => cost != null);
  const spent = costs.length ? money(costs.reduce((total, cost) => total + cost, 0)) : "not known";
  const judges = summary?.judge_cost_usd ? ` (including ${money(summary.judge_cost_usd)} for judges)` : "";
  const unpriced = summary
    ? Math.max(summary.unpriced_trials ?? 0, summary.judge_unpriced_trials ?? 0, summary.user_unpriced_trials ?? 0)
    : 0;
  const told = (usage) =>
    tokens(usage && Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)));
  return section(
    "About this run",
    pairs([
      ["Run", facts.run_id],
      ["Began", facts.started ? moment(facts.started) : null],
      ["Took", summary?.duration_ms ? duration(summary.duration_ms) : null],
      [
        "Mean score",
        summary && summary.mean_score !== null
          ? `${score(summary.mean_score)}${summary.mean_score_interval ? ` (95% CI ${summary.mean_score_interval.map(score).join(" to ")})` : ""}`
          : null,
      ],
      ["Trials", run.counts.trials !== rows ? run.counts.trials.toLocaleString("en") : null],
      ["Cost", summary ? `${unpriced && spent !== "not known" ? "at least " : ""}${spent}${judges}` : null],
      ["Tokens", told(summary?.token_usage)],
      ["Tokens of judges", told(summary?.judge_token_usage)],
      ["Targets", run.tables.targets.join(", ")],
      ["Judge", settings.judge],
      [
        "Files",
        (facts.suites ?? [])
          .map((suite) => suite.path)
          .filter(Boolean)
          .join(", "),
      ],
      [
        "Filters",
        ["filter", "tags", "exclude_tags", "limit", "sample"]
          .filter((key) => settings[key] !== null && settings[key] !== undefined && String(settings[key]))
          .map((key) => `${key.replace("_", " ")} ${settings[key]}`)
          .join(", "),
      ],
      ["Commit", facts.git_commit],
      ["Created with", facts.agentv ? `agentv ${facts.agentv}, Python ${facts.python ?? "?"}` : null],
    ]),
  );
}

export function pairs(told) {
  return element(
    "dl",
    { class: "panel pairs" },
    told
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) =>
        element(
          "div",
          {},
          element("dt", {}, name),
          element("dd", { class: /^[0-9a-f]{40,}(-\d+)?$/.test(value) ? "hash" : null }, inline(String(value))),
        ),
      ),
  );
}
