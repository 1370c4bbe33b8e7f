"""Hand-made finished trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.values import Span

NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)
ROOT = "/repo"
FILE = "/repo/evals/refund.eval.yaml"


@dataclass(frozen=True)
class LabelOnly:
    """An assertion that only has a label."""

    looks_for: str = ""

    def label(self) -> str:
        return self.looks_for

    def grade(self, context):
        raise AssertionError("this assertion was graded long ago")


def entry(kind="contains", looks_for="'30 days'", *, line=14, settings=DEFAULTS, **given) -> AssertionEntry:
    """Return an entry as the loader makes it; keywords set its settings."""
    chosen = AssertionSettings(**given) if given else settings
    return AssertionEntry(kind, LabelOnly(looks_for), chosen, Span(FILE, line, 9, line, 20))


def scored(passed=True, *, text="output contains '30 days'", evidence=None, **given) -> Score:
    """Return a grade that passes or fails."""
    return Score(entry(**given), Grade.of(passed, text, evidence), 0.25)


def graded(score, passed, *checks: Check, **given) -> Score:
    """Return a grade with a partial score."""
    return Score(entry(**given), Grade(score, passed, checks), 0.25)


def errored_score(code="script-failed", message="the script ended with status 2", **given) -> Score:
    return Score(entry(**given), Grade.errored(code, message), 0.25)


def trial(
    case_id="case-1", *, target="gpt", suite="refunds", sample=1, line=12, tags=(), metadata=None, **given
) -> Trial:
    """Return a trial with the given key; keywords set its other fields."""
    case = Case(
        case_id,
        (Message("user", "May I return it?"),),
        (),
        tags=tuple(tags),
        metadata=metadata or {},
        prompt_id=given.pop("prompt_id", None),
        sha256="c" * 64,
        span=Span(FILE, line, 5, line, 9),
        **{
            name: given.pop(name)
            for name in ("conversation_id", "cluster_key", "cluster", "vars", "position")
            if name in given
        },
    )
    prompted = "" if case.prompt_id is None else f" with {case.prompt_id}"
    given.setdefault("key", f"{suite}/{case_id}{prompted}@{target}#{sample}")
    path = given.pop("path", FILE)
    return Trial(Suite(suite, (case,), path=path), case, TargetSpec(target, "echo", None), 0.8, 300.0, sample, **given)


def finished(status="passed", *, scores: Sequence[Score] = (), error=None, trial=None, **given) -> TrialResult:
    """Return a finished trial; a failed one has one failed grade unless `scores` is given."""
    subject = trial or globals()["trial"]()
    chosen = tuple(scores) or {"passed": (scored(),), "failed": (scored(False, text="output lacks '30 days'"),)}.get(
        status, ()
    )
    fields = {
        "score": {"passed": 1.0, "failed": 0.0}.get(status),
        "output": "You may, within 30 days." if status == "passed" else "No.",
        "input": subject.case.input,
        "duration_ms": 12.3456,
        "timestamp": "2026-11-21T14:03:22.123Z",
        **given,
    }
    if status == "errored" and error is None:
        error = Failure("timeout", "no answer after 3 s", retryable=True)
    return TrialResult(trial=subject, status=status, scores=chosen, error=error, **fields)
