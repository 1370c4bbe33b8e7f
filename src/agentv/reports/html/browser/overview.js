// The first page: what the run came to, how sure that is, what needs a look, and where it is good or bad.

const LOOKS = 8;
const MOST_GROUPS = 25;
const SUITES = [["suite", "By suite", "by_suite"]];
const PARTS = [["target", "By target", "by_target"], ["prompt", "By prompt", "by_prompt"], ["variant", "By variant", "by_variant"], ...SUITES];
const TAGS = [["tag", "By tag", "by_tag"]];

function overview(state) {
  const { run, base } = state;
  return element(
    "article",
    { class: "overview" },
    base ? since(state) : null,
    verdict(state),
    matrixOf(state),
    failures(state),
    marginsOf(state),
    groupTables(state, run.facts.matrix ? SUITES : PARTS),
    byAssertion(state),
    groupTables(state, TAGS),
    scores(run),
    about(run),
  );
}

function totalsOf(run) {
  return run.summary ? run.summary.cases : countsOfCases(run.cases);
}

// Out of the summary, which is of the whole run; of a run that was cut, or by an earlier version, out of what is here.
function rateOf(run) {
  const { summary } = run;
  const several = summary?.rule_pass_rate !== undefined;
  const of = several ? (summary.early_stops ? EARLY : "judged sample") : run.facts.matrix ? "judged trial" : "judged case";
  return rateOfSummary(summary, of, (summary?.early_stops ? summary?.cases : summary?.trials)?.errored, summary?.cut) ?? rateOfCases(run.cases);
}

// How many cases meet the rule for several samples, which is another rate than that of the samples.
function metWords({ summary }) {
  if (summary?.rule_pass_rate === undefined || summary.early_stops) return null;
  const { rule_pass_rate: rate, rule_pass_rate_interval: interval, rule_pass_rate_bounds: bounds, rule, cases, rule_judged: judged } = summary;
  const sure = interval ? `95% CI ${percent(interval[0])} to ${percent(interval[1])}` : "no confidence interval: 1 cluster only";
  return `Cases that meet ${rule ? `the rule (${ruleWords(rule)})` : "their rules"}: ${percent(rate)} of ${(judged ?? cases.passed + cases.failed).toLocaleString("en")} judged (${sure}${ifFailed({ rate, bounds, errored: cases.errored })})`;
}

function ruleWords({ repeat, aggregate, threshold }) {
  if (aggregate === "mean") return `mean ≥ ${threshold} of ${repeat} samples`;
  return `${{ pass_any: "any", pass_all: "all", majority: "most" }[aggregate]} of ${repeat} samples ≥ ${threshold}`;
}

function isJudged(status) {
  return status === "passed" || status === "failed";
}

// What was evaluated.
function subjectOf(run) {
  const { suites, targets, prompts, variants } = run.tables;
  const named = [["suite", suites], ["target", targets], ["prompt", prompts], ["variant", variants]];
  return element("ul", { class: "facts subject" }, named.filter(([, names]) => names.length).map(([what, names]) =>
    element("li", {}, element("span", { class: "label" }, names.length > 1 ? `${what}s` : what), " ", someNames(names))));
}

const NAMED = 6;

function someNames(names) {
  const more = names.length - NAMED;
  return [names.slice(0, NAMED).map((name, number) => [number ? ", " : null, inline(name)]), more > 0 ? ` and ${more.toLocaleString("en")} more` : null];
}

// The first heading of a page is its title; where a comparison has that, the run's own totals come under it.
function verdict(state) {
  const { run, base } = state;
  const counts = totalsOf(run);
  const rate = rateOf(run);
  return element(
    "header",
    { class: "verdict panel" },
    base ? null : subjectOf(run),
    base ? element("h2", {}, heading(counts)) : element("h1", { tabindex: -1 }, heading(counts)),
    rate ? element(
      "div",
      { class: "rate" },
      element("p", { class: "big" }, percent(rate.rate), element("span", { class: "unit" }, rate.of === EARLY ? " pass rate" : " passed")),
      element("div", { class: "sure" }, rate.interval ? [intervalDrawing(rate.rate, rate.interval), scale()] : null,
        element("p", { class: "note" }, `${rate.of === EARLY ? `over ${count(rate.judged, "judged case")}` : `of ${count(rate.judged, rate.of)} passed`} (${certainty(rate)})`),
        run.facts.matrix ? element("p", { class: "note" }, togetherWords(run)) : null,
        metWords(run) ? element("p", { class: "note" }, metWords(run)) : null),
    ) : element("p", { class: "note" }, "Nothing was graded, so there is no rate."),
    element("ul", { class: "tiles" }, STATUSES.filter((status) => counts[status] || (status !== "skipped" && status !== "shown")).map((status) =>
      element("li", {}, element("a", { class: `tile ${status}`, href: state.chosen({ status }) }, element("strong", {}, counts[status].toLocaleString("en")), statusIcon(status), STATUS_WORDS[status])),
    )),
    run.facts.labels ? element("div", { class: "labels" }, run.facts.labels.map(({ text, warns }) => element("p", { class: warns ? "warning" : "note" }, text))) : null,
    run.summary ? null : element("p", { class: "warning" }, "This run is incomplete: the numbers cover the finished trials."),
    holdsAll(run) ? null : element("p", { class: "warning" }, `These are the totals of the whole run; this page contains ${count(run.trials.length, "trial")} of it.`),
  );
}

// Whether every trial that ended is here: a page may hold those that somebody chose.
function holdsAll(run) {
  const counts = run.summary?.trials;
  return !counts || counts.passed + counts.failed + counts.errored + (counts.shown ?? 0) <= run.trials.length;
}

function heading(counts) {
  const total = STATUSES.reduce((cases, status) => cases + counts[status], 0);
  const bad = STATUSES.filter((status) => status !== "passed" && counts[status]);
  if (bad.length) return bad.map((status, place) => `${counts[status].toLocaleString("en")}${place ? "" : ` of ${count(total, "case")}`} ${STATUS_WORDS[status]}`).join(", ");
  return counts.passed ? (counts.passed === 1 ? "The case passed" : `All ${counts.passed.toLocaleString("en")} cases passed`) : "No cases ran";
}

function scale() {
  return element("div", { class: "scale", "aria-hidden": "true" }, ["0", "25", "50", "75", "100 %"].map((tick) => element("span", {}, tick)));
}

// Without cases whose samples ended early: their means lean to the side on which they ended.
function scores(run) {
  const told = run.cases.filter((one) => !one.early && one.score !== null && isJudged(one.status));
  return told.length > 1 ? section("Scores", element("div", { class: "panel" }, scoresDrawing(told), scoresAxis())) : null;
}

function scoresAxis() {
  return element("div", { class: "scale", "aria-hidden": "true" }, ["0", "0.25", "0.5", "0.75", "1"].map((tick) => element("span", {}, tick)));
}

function lookLink(state, one) {
  return element(
    "a",
    { class: "look", href: state.address(one) },
    statusIcon(one.status),
    element("span", { class: "id" }, inline(one.id), marks(one)),
    element("span", { class: "score" }, one.status === "errored" ? "" : score(one.score)),
    element("span", { class: "why" }, inline(underneath(one))),
  );
}

function groupTables(state, kinds) {
  const { run } = state;
  return kinds.map(([name, title, key]) => {
    const summed = Object.entries(run.summary?.[key] ?? {});
    const groups = summed.length ? summed : Object.entries(countedBy(run, name));
    const enough = name === "tag" ? 1 : 2;
    return groups.length < enough ? null : section(title, groupTable(run, groups, (value) => state.chosen({ [name]: value }), name));
  });
}

function countedBy(run, name) {
  const groups = Object.create(null);
  for (const one of run.cases)
    for (const value of name === "tag" ? one.tags : [one[name]])
      if (value !== null) (groups[value] ??= []).push(one);
  for (const [value, cases] of Object.entries(groups)) {
    groups[value] = { cases: countsOfCases(cases), mean_score: undefined, rate: rateOfCases(cases) };
  }
  return groups;
}

function groupTable(run, groups, address, what) {
  const told = groups.map(([name, group]) => [inline(name), group.cases, address(name), group.rate ?? rateOfGroup(group, run) ?? olderRate(group), group.mean_score]);
  const rows = rateRows(told);
  const titles = [what, "outcomes", "pass rate", "95% CI"];
  return tableOf(groups[0][1].mean_score === undefined ? titles : [...titles, "mean score"], rows);
}

function tableOf(titles, rows) {
  const head = element("thead", {}, element("tr", {}, titles.map((title) => element("th", { scope: "col" }, title))));
  const body = element("tbody", {}, rows.slice(0, MOST_GROUPS));
  const box = element("div", { class: "panel scrolls" }, element("table", {}, head, body));
  if (rows.length > MOST_GROUPS) {
    const more = button(`Show all ${rows.length.toLocaleString("en")}`, () => {
      body.append(...rows.slice(MOST_GROUPS));
      more.remove();
    }, { class: "more" });
    box.append(more);
  }
  return box;
}

// A summary that an earlier version wrote has rates of cases.
function olderRate({ cases, pass_rate_interval: interval }) {
  const judged = cases.passed + cases.failed;
  return judged ? { rate: cases.passed / judged, interval: interval ?? intervalAt(cases.passed / judged, judged) } : null;
}

// The rate of a group in the summary, and what it counts.
function rateOfGroup(group, { summary }) {
  return rateOfSummary(group, summary?.early_stops ? EARLY : (group.rule_pass_rate ?? null) === null ? "judged trial" : "judged sample");
}

// Whether the rate counts trials of cases that ran several times: beside the numbers of cases, both then name their unit.
function countsTrials(counts, rate) {
  return Boolean(rate?.judged) && rate.of !== EARLY && rate.judged !== counts.passed + counts.failed;
}

function rateRows(told) {
  const units = told.some(([, counts, , rate]) => countsTrials(counts, rate));
  return told.map((one) => rateRow(...one, units));
}

function caseWords(counts) {
  return `${count(STATUSES.reduce((cases, status) => cases + counts[status], 0), "case")}: ${outcomeWords(counts)}`;
}

function rateRow(name, counts, address, rate, mean, units = false) {
  const { interval } = rate ?? {};
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("a", { href: address }, name)),
    element("td", { class: "wide" }, outcomesDrawing(counts), element("span", { class: "small" }, units ? caseWords(counts) : outcomeWords(counts))),
    element("td", { class: "number" }, rate ? percent(rate.rate) : "–", rate && units ? element("span", { class: "small of" }, `of ${count(rate.judged, rate.of ?? "judged trial")}`) : null),
    element("td", { class: "wide" }, interval ? [intervalDrawing(rate.rate, interval), element("span", { class: "small" }, `${percent(interval[0])} to ${percent(interval[1])}`)] : "–"),
    mean === undefined ? null : element("td", { class: "number" }, score(mean)),
  );
}

function outcomeWords(counts) {
  return STATUSES.filter((status) => counts[status]).map((status) => `${counts[status].toLocaleString("en")} ${STATUS_WORDS[status]}`).join(", ");
}

// By name where names are few, which means that cases share their assertions; else by type.
function byAssertion(state) {
  const { run } = state;
  const names = new Set(run.tables.assertions.map(([, name]) => name));
  const place = names.size <= MOST_GROUPS && !names.has(null) ? 1 : 0;
  const groups = new Map();
  for (const trial of run.trials) {
    for (let spot = 0; spot < trial.assertions.length; spot += 2) {
      const name = run.tables.assertions[trial.assertions[spot]][place];
      const status = STATUSES[trial.assertions[spot + 1]];
      if (!groups.has(name)) groups.set(name, { counts: countsOf([]), sums: new ClusterSums() });
      groups.get(name).counts[status] += 1;
      groups.get(name).sums.add(trial, status);
    }
  }
  if (!groups.size) return null;
  const early = run.tables.early.some(Boolean); // grades of samples that ended early lean to where they ended
  const bad = (counts) => counts.failed + counts.errored;
  const rows = [...groups].sort((one, other) => bad(other[1].counts) - bad(one[1].counts)).map(([name, { counts, sums }]) =>
    rateRow(assertionName(run, name), counts, state.chosen({ assertion: `failed ${name}` }), early ? null : sums.rate()));
  return section("By assertion", tableOf(["assertion", "grades", "pass rate", "95% CI"], rows));
}

// The type as a tag, then the name without it: a name that somebody gave looks unlike one that is made of the type.
function assertionName(run, name) {
  const types = [...new Set(run.tables.assertions.filter((one) => one.includes(name)).map(([type]) => type))];
  const own = types.length === 1 && name.startsWith(`${types[0]}: `) ? name.slice(types[0].length + 2) : name;
  return [types.map((type) => [element("code", { class: "tag" }, inline(type)), " "]), types.includes(own) ? null : inline(own)];
}

function about(run) {
  const { facts, summary } = run;
  const settings = facts.settings ?? {};
  const spent = summary && (summary.cost_usd !== null || summary.judge_cost_usd !== null) ? money((summary.cost_usd ?? 0) + (summary.judge_cost_usd ?? 0)) : "not known";
  const judges = summary?.judge_cost_usd ? ` (including ${money(summary.judge_cost_usd)} for judges)` : "";
  const unpriced = summary ? Math.max(summary.unpriced_trials ?? 0, summary.judge_unpriced_trials ?? 0) : 0;
  const told = (usage) => tokens(usage && Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)));
  return section("About this run", pairs([
    ["Run", facts.run_id],
    ["Began", facts.started ? moment(facts.started) : null],
    ["Took", summary && summary.duration_ms ? duration(summary.duration_ms) : null],
    ["Mean score", summary && summary.mean_score !== null ? `${score(summary.mean_score)}${summary.mean_score_interval ? ` (95% CI ${summary.mean_score_interval.map(score).join(" to ")})` : ""}` : null],
    ["Trials", run.trials.length !== run.cases.length ? run.trials.length.toLocaleString("en") : null],
    ["Cost", summary ? `${unpriced && spent !== "not known" ? "at least " : ""}${spent}${judges}` : null],
    ["Tokens", told(summary?.token_usage)],
    ["Tokens of judges", told(summary?.judge_token_usage)],
    ["Targets", run.tables.targets.join(", ")],
    ["Judge", settings.judge],
    ["Files", (facts.suites ?? []).map((suite) => suite.path).filter(Boolean).join(", ")],
    ["Filters", ["filter", "tags", "exclude_tags", "limit", "sample"].filter((key) => settings[key] !== null && settings[key] !== undefined && String(settings[key])).map((key) => `${key.replace("_", " ")} ${settings[key]}`).join(", ")],
    ["Commit", facts.git_commit],
    ["Created with", facts.agentv ? `agentv ${facts.agentv}, Python ${facts.python ?? "?"}` : null],
  ]));
}

function pairs(told) {
  return element("dl", { class: "panel pairs" }, told.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { class: /^[0-9a-f]{40,}$/.test(value) ? "hash" : null }, inline(String(value))))));
}
