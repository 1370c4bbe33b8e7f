import pytest
from msgspec.structs import replace

from agentv.model.run.grade import Check
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import ListedRun
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.reports.stored_run import LONGEST_DIFF, ShowOptions, render_head, render_rest, render_trial, text_diff
from doubles.listed_runs import listed
from doubles.trials import errored_score, finished, graded, scored, trial

LOOKS = ShowOptions(here="/repo")


def held_against(result, text):
    case = replace(result.trial.case, expected_output=(Message("assistant", text),))
    return replace(result, trial=replace(result.trial, case=case))


def shown(result, **options):
    return render_trial(result, ShowOptions("/repo", **options))


def test_all_that_is_known_of_a_trial_is_told():
    result = finished(
        "failed",
        trial=trial("refund", sample=2, repeat=3, tags=("smoke", "en"), prompt_id="brief"),
        scores=[
            scored(True, text="contains '30 days'", evidence="within 30 days", required=True),
            graded(
                0.5,
                False,
                Check("is polite", True),
                Check("names the law", False, "it does not"),
                kind="llm-rubric",
                looks_for="polite",
                weight=2,
            ),
            errored_score(line=20),
        ],
        score=0.4,
        output="You may, within 30 days.",
        cost_usd=0.0123,
        judge_cost_usd=0.5,
        token_usage=TokenUsage(1200, 34, 1234),
        attempts=2,
    )
    lines = shown(held_against(result, "You may.")).split("\n")
    assert lines[1].endswith(" 1,200 tokens in, 34 out, 2 attempts, 2026-11-21T14:03:22.123Z")
    assert lines[1].startswith(
        "  suite refunds (evals/refund.eval.yaml), tags smoke en, 0.0 s, $0.0123, judges $0.5000,"
    )
    assert [lines[0], *lines[2:]] == [
        "FAILED refund with brief on gpt (sample 2 of 3): score 0.40, needs 0.80",
        "  input",
        "    May I return it?",
        "  answer",
        "    You may, within 30 days.",
        "  checks",
        "    passed contains: '30 days' (required)  evals/refund.eval.yaml:14",
        "        evidence: within 30 days",
        "    failed llm-rubric: polite (score 0.50, weight 2)  evals/refund.eval.yaml:14",
        "      + is polite",
        "      - names the law",
        "        evidence: it does not",
        "    errored contains: '30 days'  evals/refund.eval.yaml:20",
        "      script-failed: the script ended with status 2",
        "  reference",
        "    - reference, + answer",
        "    @@ -1 +1 @@",
        "    -You may.",
        "    +You may, within 30 days.",
    ]


def test_what_a_judge_said_is_told():
    score = graded(0.9, True, Check("is polite", True))
    judged = replace(score, grade=replace(score.grade, reason="It is kind.\nAnd short.", details={"votes": [1]}))
    text = shown(finished(scores=[judged]))
    assert "        reason: It is kind.\n                And short." in text
    assert "votes" not in text
    assert '        details: {"votes": [1]}' in shown(finished(scores=[judged]), full=True)


def test_an_errored_trial_says_what_broke_and_what_was_expected():
    result = held_against(finished("errored", output=None, error=Failure("timeout", "no answer\nafter 3 s")), "Yes")
    text = shown(result)
    assert text.startswith("ERRORED case-1 on gpt: timeout\n")
    assert "  error\n    timeout:\n    no answer\n    after 3 s" in text
    assert "  reference\n    Yes" in text
    assert "answer\n" not in text.replace("no answer\n", "")


def test_an_answer_that_is_the_reference_is_not_compared():
    assert "  reference\n    the answer is the same" in shown(held_against(finished(output="Yes "), "Yes"))


def test_a_conversation_is_shown_with_its_roles_and_calls():
    spoken = (
        Message("system", "Be brief."),
        Message("assistant", "", tool_calls=(ToolCall("find", {"of": "x\x1b[2J"}),)),
        Message("tool", "found", name="find"),
    )
    lines = shown(finished(input=spoken)).split("\n")
    start = lines.index("  input") + 1
    assert lines[start : start + 6] == [
        "    system:",
        "      Be brief.",
        "    assistant:",
        '      calls find({"of": "x\\u001b[2J"})',
        "    tool (find):",
        "      found",
    ]


def test_a_long_difference_is_cut_unless_all_is_asked_for():
    result = held_against(finished(output="\n".join(map(str, range(100)))), "0")
    assert "more lines; use --full to show all" in shown(result)
    assert "    +99" in shown(result, full=True)


HOSTILE = "\x1b]0;owned\x07\u202eevil\r"


def test_nothing_that_a_model_or_a_file_says_can_steer_a_terminal():
    score = graded(0.5, False, Check(HOSTILE, False, HOSTILE), looks_for=HOSTILE)
    result = finished(
        "errored",
        trial=trial(HOSTILE, target=HOSTILE, suite=HOSTILE, tags=(HOSTILE,), prompt_id=HOSTILE),
        scores=[
            replace(score, grade=replace(score.grade, reason=HOSTILE, details={HOSTILE: HOSTILE})),
            errored_score(HOSTILE, HOSTILE),
        ],
        error=Failure(HOSTILE, HOSTILE),
        input=(Message("user", HOSTILE, name=HOSTILE, tool_calls=(ToolCall(HOSTILE, {}),)), Message("user", "x")),
        output=HOSTILE,
        timestamp=HOSTILE,
    )
    for text in (shown(held_against(result, f"not {HOSTILE}"), full=True), render_head(odd_run(), LOOKS)):
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(text)


def odd_run():
    return ListedRun(HOSTILE, f"/repo/{HOSTILE}", "finished", (HOSTILE,), (HOSTILE,))


def test_the_head_says_which_run_it_is_and_what_it_came_to():
    lines = render_head(listed(), LOOKS).split("\n")
    assert lines[:2] == [
        "run 20261121T140322Z-7f3a, finished: refunds, orders on gpt",
        "20 cases: 17 passed, 2 failed, 1 errored",
    ]
    assert lines[-1] == "results: r"


def test_the_head_of_a_run_that_is_being_written_says_how_far_it_is():
    run = listed(state="being written", summary=None, done=12)
    assert "12 of 40 trials are finished" in render_head(run, LOOKS)


@pytest.mark.parametrize(
    ("counts", "number", "said"),
    [
        (Counts(), 0, "no matching trials in this run"),
        (Counts(3, 0, 3), 3, ""),
        (Counts(30, 10, 20), 5, "5 of 30 trials shown (10 passed, 20 failed, 0 errored); --limit N shows more"),
    ],
)
def test_what_is_not_shown_is_said(counts, number, said):
    assert render_rest(counts, number) == said


def test_no_line_can_steer_a_terminal():
    assert text_diff("a", "\x1b[2J") == ["@@ -1 +1 @@", "-a", "+\\x1b[2J"]


def test_very_long_texts_are_not_compared():
    assert text_diff("a", "b\n" * LONGEST_DIFF) == ["too long to compare: 1 and 399,999 characters"]
