"""One run, many views: the terminal, Markdown, JSON, JUnit and the page in a browser give the same numbers."""

import json
import re
from xml.etree import ElementTree as ET

import pytest

from agentv.reports.text import percent
from doubles.browser_pages import follow, load_report

ANSWERS = """import zlib
def answer(prompt, case_id):
    drawn = zlib.crc32(prompt.encode()) % 100
    if drawn < 8:
        raise RuntimeError("no answer")
    return "right" if drawn < 60 + 4 * (int(case_id.split("-")[0]) % 6) else "wrong"
def flaky(prompt, case_id, seen={}):
    seen[case_id] = seen.get(case_id, 0) + 1
    return answer(f"{prompt} {seen[case_id]}", case_id)
"""
SUITES = {"plain": {}, "clustered": {"cluster": "customer"}, "conversations": {}, "repeated": {"run": {"repeat": 4}}}


def suite(kind):
    cases = []
    for number in range(36):
        case = {
            "id": f"{number % 9}-{number}",
            "input": f"question {number}",
            "tags": ["even" if number % 2 == 0 else "odd", "all"],
            "metadata": {"customer": f"customer {number % 9}"},
            "assert": [{"equals": "right", "name": "is right"}],
        }
        if kind == "conversations":
            case["conversation_id"] = f"talk {number % 9}"
        cases.append(case)
    targets = [
        {
            "name": "one",
            "provider": "python",
            "function": "answers.py:flaky" if kind == "repeated" else "answers.py:answer",
        },
        {"name": "two", "provider": "python", "function": "answers.py:answer"},
    ]
    return {"targets": targets, **SUITES[kind], "tests": cases}


def shares(text):
    """Return the percentages in a text, in Python's format."""
    return re.findall(r"\d+(?:\.\d+)?%", text)


def said(group):
    """Return the rate, interval and worst case that every view must show."""
    worst = [percent(group["pass_rate_bounds"][0])] if group["pass_rate_bounds"][0] < group["pass_rate"] else []
    return [percent(group["pass_rate"]), *map(percent, group["pass_rate_interval"]), *worst]


def several(kind):
    """Whether the cases of a suite have several samples, and so two rates."""
    return "run" in SUITES[kind]


def rule_in(text):
    """Return a view's text about the cases that meet the rule for several samples."""
    found = re.search(r"ases that meet the rule \(mean ≥ 0.8 of 4 samples\)(.*)", text)
    return found[1].replace("95% CI", "CI") if found else ""


@pytest.mark.parametrize("kind", SUITES)
def test_every_view_says_the_same_with_and_without_filters(project, tab, kind):
    project.write_files({"answers.py": ANSWERS, f"{kind}.eval.yaml": json.dumps(suite(kind))})
    exports = [word for suffix in ("md", "json", "xml", "html") for word in ("-o", f"out.{suffix}")]
    ended = project.run("eval", f"{kind}.eval.yaml", "-j", "1", *exports)
    assert ended.status in (1, 3), ended.stderr
    (run,) = (project.path / ".agentv" / "results").glob("*/summary.json")
    summary = json.loads(run.read_text())
    expected = said(summary)
    assert len(expected) == 4  # one case errored
    what = {"clustered": "clusters by 'customer'", "conversations": "conversations"}.get(kind, "cases")
    counted = f"{summary['interval_clusters']} {what}"
    assert summary["interval_clusters"] <= (36 if what == "cases" else 9)

    line = next(one for one in ended.stderr.split("\n") if one.startswith("pass rate"))
    assert shares(line.partition(", mean score")[0].replace("95% CI", "CI")) == expected
    assert counted in line
    markdown = (project.path / "out.md").read_text()
    headline = next(one for one in markdown.split("\n") if one.startswith("**Pass rate"))
    assert shares(headline.partition(", mean score")[0].replace("95% CI", "CI")) == expected
    met = (
        [percent(summary["rule_pass_rate"]), *map(percent, summary["rule_pass_rate_interval"])] if several(kind) else []
    )
    for text in (ended.stderr, headline):
        assert shares(rule_in(text))[: len(met)] == met
        assert bool(rule_in(text)) is several(kind)
    counted_words = f"{'over' if several(kind) else 'of'} {summary['judged']:,} judged"
    assert counted_words in line
    assert counted_words in headline
    document = json.loads((project.path / "out.json").read_text())["summary"]
    assert document == summary
    found = {one.get("name"): one.get("value") for one in ET.parse(project.path / "out.xml").iter("property")}
    for key in ("pass_rate", "judged", "pass_rate_interval", "interval_clusters", "pass_rate_bounds"):
        assert json.loads(found[key]) == summary["by_suite"][kind][key] == summary[key]
    (listed,) = json.loads(project.run("results", "list", "--json").stdout)
    for key in ("pass_rate", "pass_rate_interval", "pass_rate_bounds", "interval_clusters"):
        assert listed[key] == summary[key]
    assert listed.get("rule_pass_rate") == summary.get("rule_pass_rate")

    load_report(tab, project.path / "out.html")
    note = tab.inner_text(".rate .note >> nth=0").replace("95% CI", "CI")
    assert [*shares(tab.inner_text(".big")), *shares(note)] == expected
    assert counted in note
    assert shares(rule_in(tab.inner_text(".rate")))[: len(met)] == met
    told = tab.inner_text(".told").replace("95% CI", "CI")
    assert shares(told) == expected
    for choice, groups in (("tag", "by_tag"), ("target", "by_target"), ("suite", "by_suite")):
        for name, group in summary[groups].items():
            follow(tab, f"#/?{choice}={name}")
            told = tab.inner_text(".told").replace("95% CI", "CI")
            assert shares(told) == said(group), (choice, name, told)
            assert f"{group['judged']:,} judged" in told


def test_every_view_of_a_matrix_says_the_same(project):
    project.write("answers.py", ANSWERS)
    document = suite("plain")
    document["prompts"] = [{"id": "plain", "prompt": "{{ input }}"}, {"id": "polite", "prompt": "Please: {{ input }}"}]
    document["targets"].append({"name": "three", "provider": "python", "function": "answers.py:flaky"})
    project.write("a.eval.yaml", json.dumps(document))
    ended = project.run("eval", "a.eval.yaml", "--out", "run", *(f"--out=out.{one}" for one in ("md", "json", "html")))
    summary = project.summary("run")
    matrix = summary["matrix"]
    assert (matrix["targets"], matrix["prompts"]) == (["one", "two", "three"], ["plain", "polite"])
    assert (len(matrix["cells"]), len(matrix["comparisons"])) == (6, 3)
    assert {one["name"]: one["totals"] for one in matrix["by_target"]} == summary["by_target"]
    assert any(one["totals"]["cases"]["errored"] for one in matrix["cells"])

    page = (project.path / "out.html").read_text()
    (facts,) = json.loads(re.search(r'class="runs" data-run="0">(.*?)</script>', page)[1])
    sentences = [one.pop(words) for one in facts["matrix"]["comparisons"] for words in ("sentence", "details")]
    for one in facts["matrix"]["comparisons"]:
        del one["difference"], one["usage_rows"]
    assert facts["matrix"] == matrix
    assert "matrix" not in facts["summary"]
    assert json.loads((project.path / "out.json").read_text())["summary"] == summary
    shown = project.run("results", "show", "run").stdout
    command = project.run("compare", "run", "--fail-on", "any")
    markdown = (project.path / "out.md").read_text()
    for text in (ended.stderr, shown, command.stdout, markdown):
        assert [sentence for sentence in sentences if sentence not in text] == [], text
    for cell in matrix["cells"]:
        rate = shares(" ".join(said(cell["totals"])))[:3]
        written = f"{rate[0]} of {cell['totals']['judged']} ({rate[1]} to {rate[2]})"
        assert all(written in text for text in (ended.stderr, shown, markdown)), written
    compared = json.loads(project.run("compare", "run", "--json").stdout)["comparisons"]
    assert [{key: one[key] for key in one if key != "lost"} for one in compared] == matrix["comparisons"]
    assert "passed with one and do not with three" in command.stderr
    assert (project.run("results", "show", "run", "--matrix", "--json").status, command.status) == (2, 1)
    side = project.run("results", "show", "run", "--matrix", "--answers", "--errored", "--limit", "1")
    assert (side.status, side.stdout.count("\n1 of ")) == (0, 1), side.stdout


def test_the_page_against_another_run_says_the_rates_of_compare(project, tab):
    """Edited and new cases, and those that one run did not judge, are excluded from both rates."""
    project.write("answers.py", ANSWERS)
    cases = suite("plain")["tests"]
    document = {"name": "s", "target": "python:answers.py:answer", "tests": cases}
    project.write("a.eval.yaml", json.dumps(document))
    assert project.run("eval", "a.eval.yaml", "-q", "-o", "first").status in (1, 3)
    project.write("answers.py", ANSWERS.replace("drawn < 8", "90 < drawn < 98").replace("drawn < 60", "drawn < 75"))
    cases[3]["assert"] = [{"equals": "wrong"}]
    cases.append({**cases[4], "id": "5-new", "input": "a new question"})
    project.write("a.eval.yaml", json.dumps(document))
    assert project.run("eval", "a.eval.yaml", "-q", "-o", "second").status in (1, 3)
    compared = json.loads(project.run("compare", "first", "second", "--json").stdout)
    project.run("results", "report", "second", "--html", "out.html", "--against", "first", status=0)
    load_report(tab, project.path / "out.html")
    told = tab.inner_text(".compared")
    judged, passed = compared["cases"], compared["passed"]
    before, after = (percent(one / judged) for one in passed)
    assert before != after
    assert f"pass rate {before} → {after}" in told
    assert f"based on {judged} cases" in told
    assert tab.inner_text(".compared .finding").lower().startswith(compared["verdict"])
    counts = dict(one.rstrip(")").split(" (") for one in tab.locator(".changes li").all_inner_texts())
    left = compared["left_out"]
    assert int(counts.get("now passes", 0)) == compared["now_pass"]
    assert int(counts.get("now fails", 0)) == compared["now_fail"]
    assert int(counts.get("case was edited", 0)) == len(left["edited"])
    assert int(counts.get("not in the other run", 0)) == len(left["only_candidate"])


ENDED_EARLY = {
    "until decided": (["--repeat", "12", "--until", "decided"], "flaky"),
    "until decided by customer": (["--repeat", "12", "--until", "decided", "--cluster", "customer"], "flaky"),
    "cut by errors": (["--max-errors", "1"], "answer"),
    "cut by a failure": (["--fail-fast"], "answer"),
}


@pytest.mark.parametrize("kind", ENDED_EARLY)
def test_runs_that_ended_early_have_one_rate_and_one_interval_or_none(project, tab, kind):
    """The share of passed samples is biased by early stopping, and an interrupted run has no interval. The same holds for the
    page's filters."""
    flags, function = ENDED_EARLY[kind]
    project.write("answers.py", ANSWERS)
    document = {"name": "s", "target": f"python:answers.py:{function}", "tests": suite("plain")["tests"]}
    project.write("s.eval.yaml", json.dumps(document))
    ended = project.run("eval", "s.eval.yaml", "-j", "1", *flags, "-o", "out.html", "-o", "out.md")
    assert ended.status in (1, 3), ended.stderr
    (run,) = (project.path / ".agentv" / "results").glob("*/summary.json")
    summary = json.loads(run.read_text())
    line = next(one for one in ended.stderr.split("\n") if one.startswith("pass rate"))
    headline = next(one for one in (project.path / "out.md").read_text().split("\n") if one.startswith("**Pass rate"))
    assert ("cut" in summary, "early_stops" in summary) == ("cut" in kind, "until" in kind)
    expected = _said(summary)
    for text in (line, headline):
        assert shares(text.partition(", mean score")[0].replace("95% CI", "CI")) == expected
    cut = "no confidence interval: the run was stopped by --"
    load_report(tab, project.path / "out.html")
    note = tab.inner_text(".rate .note >> nth=0").replace("95% CI", "CI")
    assert [*shares(tab.inner_text(".big")), *shares(note)] == expected
    told = tab.inner_text(".told").replace("95% CI", "CI")
    assert shares(told) == expected
    for text in (line, headline, note, told):
        assert (cut in text) is ("cut" in summary)
        assert (f"over {summary['judged']} judged case" in text) is ("early_stops" in summary)
    assert " to " not in tab.inner_text("section:has(h2:text-is('By assertion')) tbody")
    for name, group in summary["by_tag"].items():
        follow(tab, f"#/?tag={name}")
        assert shares(tab.inner_text(".told").replace("95% CI", "CI")) == (_said(group) if group["judged"] else [])


def _said(group):
    """Return the same as `said` for a group that may have no interval."""
    low, high = group["pass_rate_bounds"]
    worst = [percent(low)] if low < high else []
    return [percent(group["pass_rate"]), *map(percent, group["pass_rate_interval"] or ()), *worst]
