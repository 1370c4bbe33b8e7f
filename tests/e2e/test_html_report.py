"""HTML reports in a real Chromium: what they show, what a user can do with them, and what hostile texts cannot."""

import random

import pytest
from msgspec.structs import replace

from agentv.extensions.view.pages.entries import trace_json
from agentv.extensions.view.pages.page import joined, render
from agentv.model.run.grade import Check
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.reports.text import percent
from agentv.stats.intervals.design_effect import estimated_mean, estimated_rate
from agentv.stats.intervals.proportion import wilson_interval
from doubles.browser_pages import DESKTOP, accessibility_violations, follow, load_report, settle
from doubles.html_reports import HOSTILE, everything, hostile_trial, report, samples
from doubles.matrix import HOSTILE as EVIL
from doubles.matrix import MATRIX
from doubles.traces import WORK
from doubles.trials import finished, graded, scored, trial
from doubles.views import SUMMARY
from needs import needs

PHONE = {"width": 390, "height": 844}


def script(module):
    """Return the source of a module of the page and of its imports."""
    return joined(module)


@pytest.fixture
def opened(watched, tmp_path):
    def open_(results, against=None, *, at="", view=DESKTOP, work=None, **given):
        path = tmp_path / "report.html"
        told = replace(report(results, **given), work_of=lambda _: work or {})
        with path.open("w", encoding="utf-8") as file:
            earlier = None if against is None else report(against, run_id="the-run-before")
            file.writelines(render(told, earlier))
        tab = watched.lend(path.as_uri(), view=view)
        load_report(tab, path, at)
        return tab

    return open_


def ids(tab):
    settle(tab)
    return tab.locator(".row .id").all_inner_texts()


def searched(tab, text):
    tab.fill(".search", text)
    tab.wait_for_url(lambda address: "q=" in address)
    return ids(tab)


# what the page shows


def test_the_overview_says_what_the_run_came_to_and_how_sure_that_is(opened):
    tab = opened(everything(), summary=SUMMARY)
    assert tab.inner_text("h1") == "4 of 9 cases failed, 2 errored, 1 not run"
    assert tab.inner_text(".big") == "33.3% passed"
    assert tab.locator(".verdict svg.outcomes").count() == 0  # the numbers below it say the same
    assert tab.get_attribute(".verdict svg.interval", "aria-label") == ("33.3%, 95% CI 9.7% to 70.0%")
    assert tab.locator(".tile strong").all_inner_texts() == ["2", "4", "2", "1"]
    assert "at least" not in tab.inner_text(".pairs")
    assert "$0.0163 (including $0.0040 for judges)" in tab.inner_text(".pairs")


def test_a_page_that_holds_a_part_of_the_run_says_so(opened):
    told = "These are the totals of the whole run; this page contains 1 trial of it."
    assert told in opened([finished("failed")], summary=SUMMARY).inner_text(".verdict")
    assert "this page contains" not in opened(everything(), summary=SUMMARY).inner_text(".verdict")


@needs("axe-core")
def test_a_report_can_be_used_by_everybody(opened):
    tab = opened(everything(), everything(), summary=SUMMARY)
    found = accessibility_violations(tab)
    follow(tab, "#/case/agent/looks-it-up/gpt")
    assert "\n".join(found + accessibility_violations(tab)) == ""


def test_rates_by_clusters_are_those_of_the_statistics(tab):
    chance = random.Random(8)
    drawn = []
    for _ in range(60):
        sizes = [chance.randint(1, chance.choice((1, 2, 12))) for _ in range(chance.choice((1, 2, 5, 30, 600)))]
        own = chance.random()
        drawn.append([[size, sum(chance.random() < own for _ in range(size))] for size in sizes])
    drawn += [[[4, 4]] * 9, [[4, 0]] * 9, [[10, 10]] * 7 + [[10, 0]] * 3, [[3, 1]]]
    several = [[sums, chance.choice((1, 1, 2.5, 5))] for sums in drawn]
    rates = "drawn.map(([sums, samples]) => [estimatedRate(sums, samples), estimatedMean(sums)])"
    found = tab.evaluate(f"(drawn) => {{ {script('data/rates.js')}; return {rates} }}", several)
    for (sums, number), (rate, mean) in zip(several, found, strict=True):
        known = [tuple(one) for one in sums]
        for told, expected in ((rate, estimated_rate(known, samples=number)), (mean, estimated_mean(known))):
            assert told["rate"] == pytest.approx(expected.mean)
            assert told["clusters"] == expected.clusters
            interval = expected.interval
            assert told["interval"] == (None if interval is None else pytest.approx(list(interval), abs=1e-6))


def test_the_page_of_a_case_shows_all_that_is_known(opened):
    tab = opened(everything(), at="#/case/refunds/window-closed/gpt")
    assert tab.inner_text("h1") == "window-closed"
    shown = tab.inner_text("article")
    for text in (
        "score 0.40, needs 0.80",
        "May I return it?",
        "No. You cannot return it after that.",
        "Explains why the refund was refused",
        'The answer says only "No."',
        "evals/refund.eval.yaml:15",
    ):
        assert text in shown
    assert tab.locator(".grade > summary svg").nth(0).get_attribute("aria-label") == "failed"


def test_samples_of_a_case_stand_together(opened):
    tab = opened(samples(True, True, False, True, True), at="#/case/refunds/says-it-often/gpt")
    assert tab.locator(".row").count() == 1
    assert tab.inner_text(".row .score") == "4/5"
    low, high = wilson_interval(4, 5)
    assert f"{percent(low)} to {percent(high)}" in tab.inner_text(".samples").replace("\xa0", "")
    assert tab.locator(".mark.flaky").count() == 2
    tab.click(".sample >> nth=2")
    tab.wait_for_selector("h2:has-text('Checks: 0 of 1 passed')")
    tab.keyboard.press("[")
    tab.wait_for_selector("h2:has-text('Checks: 1 of 1 passed')")


# user interaction


def suite_of(number):
    """Return cases of two suites, of which every third fails at `tone` and one in ten has a special answer."""
    for one in range(number):
        passed = one % 3 != 0
        subject = trial(f"case-{one}", suite=f"suite-{one % 2}", tags=("even",) if one % 2 == 0 else ("odd",))
        checks = [
            scored(True, name="contains: a"),
            graded(float(passed), passed, Check("is kind", passed), name="tone", kind="llm-rubric"),
        ]
        yield finished(
            "passed" if passed else "failed",
            trial=subject,
            scores=checks,
            output="so " * 60 + f"the <answer> {one}" + (" zebra's" if one % 10 == 4 else ""),
        )


def test_cases_are_chosen_by_status_suite_tag_and_assertion(opened):
    tab = opened(suite_of(12))
    tab.click(".chip[data-status=failed]")
    assert ids(tab) == ["case-0", "case-3", "case-6", "case-9"]
    assert tab.inner_text(".told") == "4 of 12 cases"  # selected by outcome, so a rate would be meaningless
    tab.select_option("select[data-name=suite]", "suite-1")
    assert ids(tab) == ["case-3", "case-9"]
    tab.reload()
    assert ids(tab) == ["case-3", "case-9"]
    tab.click("text=Clear")
    assert len(ids(tab)) == 12
    tab.select_option("select[data-name=assertion]", "failed tone")
    assert len(ids(tab)) == 4
    tab.select_option("select[data-name=assertion]", "failed contains")
    assert tab.inner_text(".list") == "No cases match."
    tab.goto(tab.url.split("#")[0] + "#/cases?tag=odd&order=name")
    assert ids(tab) == [f"case-{one}" for one in range(1, 12, 2)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zebra", [4, 14, 24]),
        ("ZEBRA's", [4, 14, 24]),
        ('"<answer> 1 zebra"', []),
        ('"<answer> 14"', [14]),
        ("zebra case-14", [14]),
        ("checks", []),
        ("evidence", []),
    ],
)
def test_search_looks_into_all_texts_and_only_texts(opened, text, found):
    tab = opened(suite_of(30), at="#/cases?order=run")
    assert searched(tab, text) == [f"case-{one}" for one in found]


def test_only_what_can_be_seen_of_a_long_list_is_there(opened):
    tab = opened(suite_of(3000), at="#/cases?order=run")
    assert tab.locator(".row").count() < 60
    tab.evaluate("document.querySelector('.list').scrollTop = 1e9")
    tab.wait_for_selector(".row:has-text('case-2999')")
    assert tab.locator(".row").count() < 60
    assert tab.locator(".rows > div").last.get_attribute("aria-setsize") == "3000"
    tab.goto(tab.url.split("#")[0] + "#/case/suite-0/case-1500/gpt?order=run")
    tab.wait_for_selector(".row.chosen:has-text('case-1500')")


def test_two_runs_stand_side_by_side(opened):
    before = [*(finished(trial=trial(name)) for name in ("a", "b", "c", "gone")), finished("failed", trial=trial("d"))]
    edited = trial("c")
    edited = replace(edited, case=replace(edited.case, sha256="e" * 64))
    now = [
        finished("failed", trial=trial("a")),
        finished(trial=trial("b")),
        finished(trial=edited),
        finished(trial=trial("d")),
        finished(trial=trial("new")),
    ]
    tab = opened(now, before)
    assert tab.locator(".changes li").all_inner_texts() == [
        "now fails (1)",
        "now passes (1)",
        "as before (1)",
        "case was edited (1)",
        "not in the other run (1)",
    ]
    assert "1 case only in the other run" in tab.inner_text("article")
    tab.click(".changes .worse")
    assert ids(tab) == ["a"]
    tab.click(".row")
    tab.wait_for_selector("article.case")
    assert tab.locator(".difference .removed").inner_text().endswith("You may, within 30 days.")
    assert tab.locator(".difference .added").inner_text().endswith("No.")


def test_targets_and_prompts_stand_side_by_side(opened):
    def one(target, prompt):
        subject = trial("row-1", target=target)
        return finished(trial=replace(subject, case=replace(subject.case, prompt_id=prompt)))

    results = [one(target, prompt) for target in ("gpt", "claude", EVIL) for prompt in ("plain", "short")]
    tab = opened(results, summary=replace(SUMMARY, matrix=MATRIX))
    assert tab.locator("article h2").all_inner_texts()[:3] == ["Targets and prompts", "Compared", "By target"]
    cells = [one.split("\n") for one in tab.locator(".matrix tbody td").all_inner_texts()]
    assert [one[0] for one in cells] == ["60.0%", "90.0%", "10 errored", "70.0%", "100.0%", "–"]
    assert cells[0][1:] == ["6 passed, 4 failed", "40.0% to 90.0%", "$0.0012 per answer · median 813 ms"]
    assert cells[4][1:] == ["9 passed, 1 errored", "40.0% to 90.0%", "median 40 ms"]
    assert tab.locator(".compares .mark").all_inner_texts() == ["better", "not compared", "inconclusive"]
    told = report(results, summary=replace(SUMMARY, matrix=MATRIX)).facts()["matrix"]["comparisons"]
    assert tab.locator(".compares p bdi").all_inner_texts() == [row["sentence"] for row in told]
    assert "corrected for 2 tests (Holm)" in tab.inner_text("article")
    assert "Compared case by case: the same cases on both sides." in tab.inner_text("article")
    assert "3 targets and 2 prompts together, " in tab.inner_text(".verdict")
    assert tab.locator(".subject li").all_inner_texts()[2] == "prompts plain, short"
    tab.set_viewport_size(PHONE)
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert tab.is_visible(".matrix .col >> nth=0")
    tab.click(".cellrate >> nth=1")
    assert tab.url.endswith("#/cases?target=claude&prompt=plain")
    assert ids(tab) == ["row-1"]


# hostile texts


def test_hostile_texts_are_text_wherever_they_stand(opened):
    tab = opened([hostile_trial(number, text) for number, text in enumerate(HOSTILE)])
    for number in range(len(HOSTILE)):
        tab.evaluate(f"location.hash = document.querySelectorAll('.row')[{number}].hash")
        tab.wait_for_selector(".row.chosen")
        tab.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        links = tab.evaluate("[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
        assert all(link.startswith("#") for link in links)
    kinds = tab.evaluate("[...new Set([...document.querySelectorAll('*')].map((one) => one.localName))]")
    assert not {"img", "iframe", "object", "embed", "base", "form", "link"} & set(kinds)


def test_what_turns_text_around_is_spelled_out(opened):
    tab = opened([finished(trial=trial("a\u202eb\ud800c"), output="\x1b[2J\u2066x")], at="#/cases")
    assert ids(tab) == ["aU+202EbU+D800c"]
    tab.click(".row")
    tab.wait_for_selector("article.case")
    assert "U+001B[2JU+2066x" in tab.inner_text("article")


def test_the_policy_holds_against_a_script_that_got_in(opened, watched):
    tab = opened([finished()])
    tried = """() => {
      const refused = [];
      for (const make of [
        () => { document.body.innerHTML = '<p>' },
        () => { const one = document.createElement('script'); one.textContent = 'window.hacked = 1'; document.body.append(one) },
      ]) try { make() } catch (error) { refused.push(error.name) }
      return refused;
    }"""
    assert tab.evaluate(tried) == ["TypeError", "TypeError"]
    assert all("TrustedHTML" in told or "TrustedScript" in told for told in watched.wrong)
    watched.wrong.clear()


MARKDOWN = """# Big

- **bold** and `code<b>`
- [web](https://example.com/?a=1&b=2) [run](javascript:window.hacked=1) [data](data:text/html,x) [file](file:///etc)
- ![picture](https://example.com/x.png) <img src=x onerror="window.hacked=1"> &lt;b&gt; <mailto:a@example.com>

| a | b |
|---|--:|
| 1 | \u202e2 |

```
</script><script>window.hacked=1</script>
```
"""


def test_answers_are_shown_as_markdown_to_those_who_ask(opened):
    deep = "> " * 9 + "*a " * 1500 + "a* " * 1500
    results = [
        finished(trial=trial("marked"), output=MARKDOWN),
        finished(trial=trial("deep"), output=deep),
        finished(trial=trial("nested"), output="> " * 300 + "inside"),
        finished(trial=trial("long"), output="*a* " * 30_000),
        finished(trial=trial("empty"), output="a" + "\n" * 99_000),
        *(finished(trial=trial(f"h{number}"), output=f"**a** {text}") for number, text in enumerate(HOSTILE)),
    ]
    tab = opened(results, at="#/case/refunds/marked/gpt")
    assert tab.inner_text(".said").startswith("# Big")
    tab.click("text=Markdown")
    assert tab.get_attribute("[data-markdown]", "aria-pressed") == "true"
    links = "[...document.querySelectorAll('.said a')].map((one) => [one.getAttribute('href'), one.rel, one.title])"
    web = "https://example.com/?a=1&b=2"
    rel = "noopener noreferrer"
    assert tab.evaluate(links) == [[web, rel, web], ["mailto:a@example.com", rel, "mailto:a@example.com"]]
    shown = tab.inner_text(".said")
    for text in ("[run](javascript:window.hacked=1)", "[data](data:", "image: picture", "<img src=x", "<b>", "U+202E2"):
        assert text in shown
    assert tab.locator(".said h1, .said img, .said script").count() == 0
    assert tab.get_attribute(".said [role=heading]", "aria-level") == "3"
    assert tab.locator(".said td.right").inner_text() == "U+202E2"
    assert tab.locator(".said strong, .said li, .said pre").count() == 5
    for number in range(len(HOSTILE)):
        follow(tab, f"#/case/refunds/h{number}/gpt")
        assert tab.inner_text(".said strong") == "a"
    follow(tab, "#/case/refunds/deep/gpt")
    assert tab.inner_text(".said").count("a") == 3000
    follow(tab, "#/case/refunds/nested/gpt")
    assert "nested too deeply" in tab.inner_text(".said")
    assert "inside" in tab.inner_text(".said")
    follow(tab, "#/case/refunds/empty/gpt")
    assert tab.locator("[data-markdown]").count() == 0
    follow(tab, "#/case/refunds/long/gpt")
    assert "the answer is too long" in tab.inner_text(".said")
    tab.keyboard.press("m")
    assert "too long" not in tab.inner_text(".said")


# accessibility


@pytest.mark.parametrize("at", ["", "#/cases", "#/case/refunds/window-closed/gpt", "#/case/agent/looks-it-up/gpt"])
def test_nothing_is_wider_than_a_phone(opened, at):
    before = [finished(trial=trial("window-closed"), output="a " * 400 + "x" * 400), *everything()]
    trials = [one.trial for one in everything()]
    tagged = [replace(one, case=replace(one.case, tags=("m" * 70,))) for one in trials]
    now = [replace(one, trial=other) for one, other in zip(everything(), tagged, strict=True)]
    tab = opened(now, before, at=at, view=PHONE)
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert tab.is_visible("main" if at != "#/cases" else ".list")


# agents


def worked(opened, work, **given):
    tab = opened([finished("failed")], work=work, at="#/cases", **given)
    tab.locator(".row").first.click()
    tab.wait_for_selector("article.case")
    return tab


def test_a_timeline_shows_what_an_agent_did_when_and_at_which_cost(opened):
    tab = worked(opened, {"trace": trace_json(WORK, "artifacts/a/trace.json")})
    assert tab.locator("h2", has_text="Timeline: 11 steps").count() == 1
    shown = "claude 2.1 · 4 tool calls · 1 error · 30 in (3 cached), 10 out (2 reasoning) · $0.7500 · 250 ms"
    assert shown in tab.inner_text(".timeline")
    steps = tab.locator(".did > li")
    assert steps.count() == 11
    assert steps.nth(2).inner_text().split("\n")[-1] == "10 in (3 cached), 5 out (2 reasoning) · $0.2500 · 100 ms"
    assert tab.locator(".did .failed .what strong").all_inner_texts() == ["shell", "shop.refund", "shop.refund"]
    assert steps.nth(6).get_attribute("class") == "deep1"
    steps.nth(6).locator("summary").click()
    tab.wait_for_selector(".stepmore")
    assert "pytest" in steps.nth(6).inner_text()
    rect = steps.nth(6).locator("svg rect.failed")
    assert (float(rect.get_attribute("x")), float(rect.get_attribute("width"))) == (52.0, 20.0)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_work_is_text(opened, text):
    steps = (
        MessageStep("user", text, text),
        ToolCallStep(text, {text: text}, text + "x", text, text, text),
        UsageStep(text, error=text),
        PermissionStep(text, False, text),
    )
    work = {
        "trace": trace_json(Trace(steps, agent=text, stop_reason=text, partial=text), text),
        "diff": {"text": f"diff --git {text}\n+{text}\n", "lines": 2, "total": 3, "path": text},
        "work_problem": text,
    }
    tab = worked(opened, work)
    for summary in tab.locator(".did summary").all():
        summary.click()
    assert tab.locator("article img, article script, article a[href^='javascript']").count() == 0
