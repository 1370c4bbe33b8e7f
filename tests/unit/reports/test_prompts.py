"""A prompt library as shown to people and programs."""

import json

import pytest
from msgspec.structs import replace

from agentv.model.suite.exam import ExamRow
from agentv.model.suite.library import (
    ExamReport,
    ListedPrompt,
    Promotion,
    PromotionGate,
    PromptDiff,
    ShownPrompt,
    TextChange,
    TextDifference,
)
from agentv.reports.prompts import (
    differences_data,
    listed_data,
    promotion_lines,
    promotions_data,
    prompt_data,
    render_differences,
    render_list,
    render_prompt,
)
from agentv.reports.run.exam_attempts import exam_json, exam_lines, painted
from agentv.reports.text import cells

PASSED = ExamRow("2026-11-22T08:35:00.125Z", True, 5, 5, model="anthropic:claude-opus-4-7", judge="examiner")
FAILED = replace(PASSED, all_passed=False, passed=3, failed_cases=("a", "b"))
READY = ListedPrompt("greeter", "/repo/prompts/greeter", "ready", last=PASSED, compared=True)
EDITED = replace(READY, edited=True, changes=(TextChange("prompt.md", "edited"),))
DRAFT = ListedPrompt("new", "/repo/prompts/new", "draft")
STEERING = "\x1b[2Jx\ny"


def test_a_column_that_says_nothing_is_left_out():
    assert "CHANGED" not in render_list([READY, DRAFT], width=80)
    assert "unknown" in render_list([replace(READY, compared=False)], width=80)
    assert "see doctor" in render_list([replace(READY, wrong=True)], width=80)


def test_only_the_last_column_is_cut_to_the_terminal_and_colour_takes_no_room():
    many = replace(EDITED, changes=tuple(TextChange(f"examples/例-{n}/inputs.yml", "edited") for n in range(5)))
    lines = render_list([many], width=80).splitlines()
    assert lines[1].endswith("…")
    assert all(cells(line) <= 80 for line in lines)
    assert "and 2 more" in render_list([many], width=200)
    plain = render_list([EDITED, READY, DRAFT], width=80)
    assert uncoloured(render_list([EDITED, READY, DRAFT], width=80, color=True)) == plain


def uncoloured(text: str) -> str:
    return "".join(part.split("m", 1)[-1] if place else part for place, part in enumerate(text.split("\x1b[")))


SHOWN = ShownPrompt(
    EDITED,
    description="Greets a person by name. " * 6,
    owner="jane",
    tags=("a", "b"),
    others={"team": "green", "deep": {"x": 1}},
    texts={"prompt.md": 12, "meta.yaml#description": 6},
    cases=("a", "b"),
    queries={"greet me": True, "sing": False},
    exam_rows=(FAILED, PASSED),
    findings=1,
    gate=PromotionGate("ready", (("it was changed since its exam", ("prompt.md: edited",)),)),
)


def test_a_prompt_shown():
    text = render_prompt(SHOWN, here="/repo", width=80)
    assert text.splitlines()[0] == "greeter: ready (edited)"
    assert "owner     jane" in text
    assert "rests on  prompt.md, description" in text
    assert "queries   1 that should trigger it, 1 that should not" in text
    assert text.index("5/5") < text.index("3/5")  # latest first
    assert "not passed: a, b" in text
    assert "cannot be promoted to ready yet:\n  - it was changed since its exam\n    prompt.md: edited" in text
    assert "doctor finds 1 thing to fix: agentv prompt doctor greeter" in text
    assert all(cells(line) <= 80 for line in text.splitlines())
    assert uncoloured(render_prompt(SHOWN, here="/repo", width=80, color=True)) == text


def test_a_prompt_that_nobody_examined_or_described():
    text = render_prompt(ShownPrompt(DRAFT), here="/repo")
    assert "(no description)" in text
    assert "never examined: agentv prompt eval new" in text


def test_nothing_that_files_say_steers_the_terminal():
    hostile = replace(
        SHOWN,
        listed=replace(EDITED, id=STEERING, changes=(TextChange(STEERING, "edited"),)),
        description=STEERING,
        owner=STEERING,
        tags=(STEERING,),
        others={STEERING: STEERING},
        texts={STEERING: 1},
        cases=(STEERING,),
        exam_rows=(replace(FAILED, ts=STEERING, failed_cases=(STEERING,), model=STEERING, judge=STEERING),),
        gate=PromotionGate("ready", ((STEERING, (STEERING,)),)),
    )
    report = ExamReport(STEERING, FAILED, STEERING, (STEERING,), STEERING, hostile.gate)
    difference = TextDifference(STEERING, "edited", b"\x1b[2J\n", b"y\x1b[0m")
    shown = [
        render_prompt(hostile, here="/repo"),
        render_list([hostile.listed], width=80),
        *exam_lines(report, (), "/repo"),
        *promotion_lines(Promotion(STEERING, STEERING, "draft", hostile.gate), here="/repo"),
        render_differences(PromptDiff("p", replace(PASSED, ts=STEERING), (difference,))),
    ]
    assert not any("\x1b" in text for text in shown)
    assert "\x1b" not in json.dumps([prompt_data(hostile, "/repo"), listed_data(hostile.listed, "/repo")], default=str)


def test_the_same_for_programs():
    one = listed_data(EDITED, "/repo")
    assert (one["id"], one["path"], one["status"], one["edited"]) == ("greeter", "prompts/greeter", "ready", True)
    assert one["changes"] == [{"path": "prompt.md", "kind": "edited"}]
    assert list(one["last"])[:5] == ["ts", "all_passed", "total", "passed", "failed_cases"]
    assert "line" not in one["last"]
    assert listed_data(replace(READY, compared=False), "/repo")["changes"] is None
    told = json.loads(json.dumps(prompt_data(SHOWN, "/repo"), default=str))
    shown = told["promotion"]["reasons"]
    assert shown == [{"message": "it was changed since its exam", "notes": ["prompt.md: edited"]}]
    shown = told["queries"]
    assert shown == [{"query": "greet me", "should_trigger": True}, {"query": "sing", "should_trigger": False}]


def test_the_lines_of_an_exam():
    report = ExamReport(
        "greeter", PASSED, "/repo/prompts/greeter/.eval.jsonl", ("a torn line",), gate=PromotionGate("tested")
    )
    assert exam_lines(report, ["triggering: 1 of 1 query right"], "/repo") == [
        "exam of greeter: passed, 5 of 5",
        "  triggering: 1 of 1 query right",
        "  recorded in prompts/greeter/.eval.jsonl",
        "  note: a torn line",
        "  can be promoted to tested: agentv prompt promote greeter",
    ]
    lost = replace(report, error="the disk is full", gate=None, exam_row=replace(PASSED, partial=True))
    assert exam_lines(lost, (), "/repo")[1:3] == [
        "  partial, so not evidence for a promotion: a part of the exam, or with settings other than the exam's",
        "  not recorded: the disk is full",
    ]
    told = exam_json(lost, None, "/repo")
    shown = (told["recorded"], told["fault"], "triggering" in told, "promotion" in told)
    assert shown == (False, "the disk is full", False, False)


def test_an_exam_that_a_ready_prompt_did_not_pass_is_spoken_of():
    report = ExamReport("greeter", FAILED, "/repo/log", gate=PromotionGate(None))
    assert exam_lines(report, (), "/repo")[-1] == "  it is ready but did not pass: agentv prompt demote greeter"
    assert exam_lines(replace(report, exam_row=PASSED), (), "/repo")[-1] == "  it is already ready"
    partial = replace(report, exam_row=replace(FAILED, partial=True))
    assert exam_lines(partial, (), "/repo")[-1] == "  it is already ready"


def test_only_the_verdict_is_painted():
    assert painted("exam of passed: failed, 1 of 2", color=True) == "exam of passed: \x1b[31mfailed\x1b[0m, 1 of 2"
    assert painted("exam of x: passed, 2 of 2", color=False) == "exam of x: passed, 2 of 2"
    assert painted("  recorded in x: passed, y", color=True) == "  recorded in x: passed, y"


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Promotion("p", "/repo/m", "draft", PromotionGate("tested"), written=True), "p: draft → tested, written to m"),
        (
            Promotion("p", "/repo/m", "draft", PromotionGate("tested")),
            "p: draft → tested would be written; nothing was (--dry-run)",
        ),
        (Promotion("p", "/repo/m", "ready", PromotionGate(None)), "p is ready already"),
        (Promotion("p", "/repo/m", "tested", PromotionGate(None)), "p is tested already"),
        (
            Promotion("p", "/repo/m", "draft", PromotionGate("ready", (("why", ()),))),
            "p stays draft: it cannot become ready\n  - why",
        ),
    ],
)
def test_what_became_of_a_promotion(done, said):
    assert "\n".join(promotion_lines(done, here="/repo")) == said
    [told] = json.loads(json.dumps(promotions_data([done], here="/repo")))
    shown = (told["prompt"], told["before"], told["written"], told["to"])
    assert shown == ("p", done.before, done.written, done.gate.to)


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (TextDifference("a", "edited", b"x\ny\n", b"x\nz\n"), "--- a (T)\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n+z"),
        (TextDifference("a", "added", None, b"x\n"), "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+x"),
        (TextDifference("a", "removed", b"x\n", None), "--- a (T)\n+++ /dev/null\n@@ -1 +0,0 @@\n-x"),
        (
            TextDifference("a", "edited", b"x\n", b"x"),
            "--- a (T)\n+++ a\n@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file",
        ),
        (
            TextDifference("a", "edited", None, b"x\n", lost=True),
            "--- a (T)\n+++ a\n@@ edited; the examined text is not stored here @@",
        ),
        (TextDifference("a", "edited", b"\xff", b"\x00"), "--- a (T)\n+++ a\n@@ edited; not text @@"),
        (
            TextDifference("meta.yaml#description", "edited", b"x", b"y"),
            "--- description (T)\n+++ description\n@@ -1 +1 @@\n-x\n+y",
        ),
    ],
)
def test_a_difference(difference, said):
    found = PromptDiff("p", replace(PASSED, ts="T"), (difference,))
    assert render_differences(found) == said
    assert uncoloured(render_differences(found, color=True)) == said
    [told] = differences_data(found)["differences"]
    assert (told["kind"], told["kept"]) == (difference.kind, not difference.lost)
