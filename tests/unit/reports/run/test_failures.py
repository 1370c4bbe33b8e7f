from __future__ import annotations

from agentv.model.run.grade import Check
from agentv.model.values.response import Failure
from agentv.reports.run.failures import FEW, MEMBERS, FailureGroups
from doubles.trials import errored_score, finished, graded, scored, trial


def grouped(*results):
    found = FailureGroups()
    for number, result in enumerate(results):
        found.add(result, number)
    return found.groups()


def told(*results):
    return [(one.cases, one.trials, one.status, one.cause) for one in grouped(*results)]


def errored(case, message, code="http-status", **given):
    return finished("errored", trial=trial(case, **given), error=Failure(code, message))


def wrong(case, kind="contains", looks_for="'30 days'", **given):
    """A failed trial with one assertion that names what it looks for."""
    text = f"{kind} {looks_for}"
    return finished(
        "failed", trial=trial(case, **given), scores=[scored(False, kind=kind, looks_for=looks_for, text=text)]
    )


def test_the_most_cases_come_first_and_what_passed_is_in_no_group():
    judge = [
        finished(
            "errored",
            trial=trial(f"row-{number}"),
            error=Failure(
                "judge-http-status", f"llm-rubric: nice {number}: judge answered 401 (request req_8f3a2b{number}c1d)"
            ),
            scores=[errored_score("judge-http-status", f"judge answered 401 (request req_8f3a2b{number}c1d)")],
        )
        for number in range(3)
    ]
    assert told(finished(), wrong("a"), finished("shown"), *judge) == [
        (3, 3, "errored", "judge-http-status: judge answered 401 (request …)"),
        (1, 1, "failed", "contains '30 days'"),
    ]


def test_equal_messages_are_told_as_they_are_and_statuses_are_not_mixed_up():
    found = told(
        errored("a", "HTTP 401 after 1.5 s"),
        errored("b", "HTTP 401 after 1.5 s"),
        errored("c", "HTTP 500"),
        errored("d", "HTTP 500"),
    )
    assert [cause for *_, cause in found] == ["http-status: HTTP 401 after 1.5 s", "http-status: HTTP 500"]
    (one,) = grouped(errored("a", "HTTP 429: try again in 1.5 s"), errored("b", "HTTP 429: try again in 12 s"))
    assert one.cause == "http-status: HTTP 429: try again in … s"


def test_an_id_in_a_message_separates_nothing():
    (one,) = grouped(errored("row-1", "no row for row-1"), errored("row-2", "no row for row-2"))
    assert (one.cases, one.cause) == (2, "http-status: no row for …")


def test_samples_prompts_and_targets_of_one_case_are_one_case():
    results = [
        wrong("a", target=target, prompt_id=prompt, sample=sample, repeat=2)
        for target in ("x", "y")
        for prompt in ("p", "q")
        for sample in (1, 2)
    ]
    (one,) = grouped(*results)
    assert (one.cases, one.trials, one.targets, len(one.members)) == (1, 8, ("x", "y"), 8)


def test_what_decided_is_the_cause_not_what_has_no_weight_or_passed():
    scores = [
        scored(False, text="a note", looks_for="'note'", weight=0),
        graded(0.9, True, Check("is polite", True), kind="tone", looks_for="polite"),
        scored(False, kind="is-json", looks_for="", text="is valid JSON", required=True),
        scored(False, text="contains 'x'", looks_for="'x'"),
    ]
    (one,) = grouped(finished("failed", trial=trial("a"), scores=scores))
    assert one.cause == "is-json: is valid JSON (required)"


def test_the_first_trial_in_the_file_is_the_example_whichever_ends_first():
    (one,) = grouped(*(wrong(f"c{line}", line=line) for line in range(MEMBERS + 30, 0, -1)))
    assert (one.example.test_id, one.members[0].test_id, one.members[0].number) == ("c1", "c1", MEMBERS + 29)
    assert (one.trials, len(one.members)) == (MEMBERS + 30, MEMBERS)
    lines = range(FEW + 1, 0, -1)
    (merged,) = grouped(*(wrong(f"c{line}", looks_for=f"'{line}x'", line=line) for line in lines))
    assert (merged.example.test_id, merged.members[-1].test_id) == ("c1", f"c{FEW + 1}")
