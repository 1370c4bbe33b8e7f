import shlex
import subprocess
from fnmatch import fnmatchcase

from agentv.model.run.grade import Check
from agentv.model.suite.workspace import Variant
from agentv.model.values.response import Failure
from agentv.reports.annotations import CAUSES, cause_diagnostics, ran_groups, run_diagnostics
from agentv.reports.run.failures import FEW, MEMBERS, FailureGroups
from agentv.reports.run.rerun import RerunOptions
from doubles.trials import errored_score, finished, graded, scored, trial
from doubles.views import view_of


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
    """Return a failed trial with one assertion that names what it looks for."""
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


ROOT = "/repo"


def options(*, targets=("gpt",), here=ROOT, **settings):
    suite = {"name": "refunds", "path": "evals/refund.eval.yaml", "targets": [{"name": name} for name in targets]}
    return RerunOptions.of({"settings": settings, "suites": [suite]}, here=here, root=ROOT)


def command(given, *trials):
    found = FailureGroups()
    for one in trials:
        found.add(finished("failed", trial=one))
    (group,) = found.groups()
    rerun = given.rerun(group)
    return None if rerun is None else (shlex.split(rerun.command)[2:], rerun.cases)


def test_a_trial_is_named_by_its_case_target_prompt_and_variant_where_there_are_others():
    suite = {
        "name": "refunds",
        "path": "evals/refund.eval.yaml",
        "targets": [{"name": "gpt"}, {"name": "claude"}],
        "prompts": [{"id": "brief", "label": None}, {"id": "long", "label": None}],
        "variants": [{"name": "bare"}, {"name": "skill"}],
    }
    given = RerunOptions.of({"settings": {}, "suites": [suite]}, here=ROOT, root=ROOT)
    one = trial("a", prompt_id="brief", variant=Variant("skill", None, None, "x"))
    named = ["--target", "gpt", "--prompt", "brief", "--variant", "skill"]
    assert command(given, one)[0] == ["evals/refund.eval.yaml", "--filter", "a", *named]
    both = trial("a", prompt_id="long", variant=Variant("skill", None, None, "x"))
    assert command(given, one, both)[0][3:] == ["--target", "gpt", "--variant", "skill"]


def test_what_shapes_answers_and_grades_is_repeated_and_what_chose_cases_is_not():
    given = options(
        targets=("gpt",), judge="openai:gpt-5", threshold=0.75, repeat=3, variables={"lang": "de ch"},
        env_file=".env.ci", trust_data=True, filter="x*", limit=3, workers=9,
    )  # fmt: skip
    words, _ = command(given, trial("a"))
    assert words[3:] == [
        *("--var", "lang=de ch", "--judge", "openai:gpt-5", "--env-file", ".env.ci"),
        *("--repeat", "3", "--threshold", "0.75", "--trust-data"),
    ]
    on_the_command_line = RerunOptions.of(
        {"settings": {"targets": ["a", "b"]}, "suites": [{"name": "s", "path": "evals/refund.eval.yaml"}]},
        here=ROOT,
        root=ROOT,
    )
    assert command(on_the_command_line, trial("x", target="b"))[0][3:] == ["--target", "b"]


def test_a_shell_gives_back_every_id_and_no_pattern_selects_another():
    ids = ["it's", "a b", "$(rm -rf x)", "\x1b[2J", "back\\slash'\n", "\u202eevil", "x*", "a[b]*", "-x", "`id`", "ü"]
    for identity in ids:
        found = FailureGroups()
        found.add(finished("failed", trial=trial(identity)))
        line = options().rerun(found.groups()[0]).command
        assert line.isprintable()
        script = f"agentv() {{ printf '%s\\0' \"$@\"; }}; {line}"
        words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode().split("\0")
        pattern = words[words.index("--filter") + 1]
        assert pattern == identity or fnmatchcase(identity, pattern)
        assert not fnmatchcase("xyz", pattern)


def test_an_id_with_brackets_selects_no_other_case():
    for identity, other in {"[ab]": "a", "a [lang=de]": "a l", "[[]": "["}.items():
        pattern = command(options(), trial(identity))[0][2]
        assert fnmatchcase(identity, pattern)
        assert not fnmatchcase(other, pattern)
    assert command(options(), trial("a[0"))[0][2] == "a[0"


def test_an_errored_trial_has_the_code_of_its_error_and_the_place_of_its_case():
    error = Failure("timeout", "no answer within 3 s")
    (found,) = run_diagnostics(view_of(finished("errored", trial=trial("slow", line=40), error=error)))
    assert (found.code, found.span.line, found.message) == ("timeout", 40, "slow: timeout: no answer within 3 s")


def test_a_cause_is_told_once_at_the_assertion_of_its_first_trial():
    results = [
        finished(
            "failed",
            trial=trial(f"c{one}", line=one + 1),
            score=0.25,
            scores=[scored(False, text="contains 'x'", evidence="no", line=14)],
        )
        for one in range(30)
    ]
    (found,) = cause_diagnostics(view_of(*results))
    shown = (found.code, found.span.line, found.message)
    assert shown == ("case-failed", 14, "30 cases: failed: contains: '30 days': contains 'x'")
    assert found.notes[:2] == ("first: c0: score 0.25, needs 0.80", "also: c1, c2, c3, c4, c5 and 24 more cases")


def test_ten_causes_are_told_and_cut_answers_once():
    causes = [
        finished("errored", trial=trial(f"c{one}", line=one + 1), error=Failure(f"code-{one}", "it broke"))
        for one in range(CAUSES + 2)
    ]
    cut = [finished("passed", trial=trial(f"d{one}"), score=1.0, finish_reason="length") for one in range(3)]
    view = view_of(*causes, *cut)
    found = cause_diagnostics(view)
    assert [one.severity for one in found] == ["error"] * CAUSES + ["warning"]
    assert found[-1].notes == ("2 more answers cut at the token limit",)
    assert len(ran_groups(view)) == CAUSES + 2
