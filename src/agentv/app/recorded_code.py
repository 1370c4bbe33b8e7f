"""Grades of user code from a cassette: the code itself need not run (`--record-code`).

This covers scripts, webhooks, Python, JavaScript and custom assertions, and rubrics whose prompt is written by code.
The key of a grade covers the code, its options and the bytes of its files, the environment that the suite sets, and its
input except for the duration of the answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct, structs

from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.source.files import without_home
from agentv.model.run.context import Assertion, AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.registry.fields import PromptCode

if TYPE_CHECKING:
    from agentv.store.cassettes.cassette import Cassette

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


class RecordedCode(Struct, frozen=True):
    """Replaces grading code by a cassette.

    Attributes:
        cassette: contains the grades.
        asks: missing grades are computed and recorded; otherwise they are errors.
        root: absolute path of the repository root, which paths are relative to.
    """

    cassette: Cassette
    asks: bool
    root: str

    def within(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """The trials with assertions that look in the cassette before they run code."""
        for trial in trials:
            case = trial.case
            turns = tuple(structs.replace(turn, assertions=self._around(turn.assertions, trial)) for turn in case.turns)
            graded = structs.replace(case, assertions=self._around(case.assertions, trial), turns=turns)
            yield structs.replace(trial, case=graded)

    def _around(self, entries: Iterable[AssertionEntry], trial: Trial) -> tuple[AssertionEntry, ...]:
        return tuple(self._entry(entry, trial) for entry in entries)

    def _entry(self, entry: AssertionEntry, trial: Trial) -> AssertionEntry:
        assertion: Any = entry.assertion
        if entry.inner:
            return structs.replace(entry, assertion=replace(assertion, assert_=self._around(entry.inner, trial)))
        return structs.replace(entry, assertion=_Recorded(entry, trial, self)) if runs_code(assertion) else entry

    def key(self, entry: AssertionEntry, trial: Trial, context: AssertionContext) -> str:
        """The sha256 of what determines a grade, in hex."""
        suite, assertion = trial.suite, entry.assertion
        judge = trial.judge_called(getattr(assertion, "judge", None)) if _calls_judge(assertion) else None
        facts = (
            (suite.name, suite.env_sha256, trial.case.id, trial.case.prompt_id, trial.target.name, trial.sample)
            + ((trial.variant.sha256,) if trial.variant is not None else ()),
            fingerprint(structs.replace(entry, settings=DEFAULTS), suite.graders),
            (judge.name, judge.fingerprint) if judge is not None else None,
            _seen(context),
        )
        try:
            written = _encode(facts)
        except (UnicodeEncodeError, RecursionError):  # half a character, as an answer of a function may hold one
            written = repr(facts).encode(errors="surrogatepass")
        root = _encode(self.root)[1:-1] if self.root != "/" else b"\x00"
        return hashlib.sha256(without_home(written.replace(root, b""))).hexdigest()


def runs_code(assertion: object) -> bool:
    """Whether grading runs user code, or calls a user's server."""
    return bool(getattr(assertion, "runs_code", False)) or isinstance(getattr(assertion, "prompt", None), PromptCode)


def _calls_judge(assertion: object) -> bool:
    return bool(getattr(assertion, "needs_judge", False))


def _seen(context: AssertionContext) -> dict[str, Any]:
    """What code gets to see, without how long the answer took and where the workspace lay: they differ each time."""
    seen: dict[str, Any] = {**context.payload, "threshold": context.threshold, "reported": context.response_metadata}
    trace: Any = seen["trace"]
    metrics = {name: value for name, value in trace["metrics"].items() if name != "duration_ms"}
    summary: Any = seen["trace_summary"]
    seen["trace_summary"] = {name: value for name, value in summary.items() if name != "duration_ms"}
    for name in ("duration_ms", "time_to_first_token_ms", "workspace_path", "response_metadata"):
        del seen[name]
    if not seen["context"]:
        del seen["context"]
    return {**seen, "trace": {**trace, "metrics": metrics}, "answered": context.answered}


def code_of(assertion: object) -> object | None:
    """The assertion whose code may run for an entry; None if the cassette replaces it."""
    return assertion.code if isinstance(assertion, _Recorded) else assertion


class _Recorded:
    """An assertion whose grade is looked for in a cassette."""

    __slots__ = ("_code", "_entry", "_trial")

    def __init__(self, entry: AssertionEntry, trial: Trial, code: RecordedCode) -> None:
        self._entry = entry
        self._trial = trial
        self._code = code

    @property
    def code(self) -> object | None:
        """The assertion itself, where it may run."""
        return self._entry.assertion if self._code.asks else None

    def label(self) -> str:
        """Label of the assertion."""
        return self._entry.assertion.label()

    async def grade(self, context: AssertionContext) -> Grade:
        """The grade that is recorded, and costs nothing again; else the code's own, recorded unless it errored."""
        from agentv.store.cassettes.recorded_grades import Grading  # only of a run with a cassette

        entry, trial, cassette = self._entry, self._trial, self._code.cassette
        grading = Grading(
            self._code.key(entry, trial, context),
            trial.case.id,
            trial.target.name,
            trial.sample,
            entry.name,
            context.output,
        )
        found = cassette.grade(grading)
        if found is not None:
            return structs.replace(found, token_usage=None, cost_usd=None if found.cost_usd is None else 0.0)
        if not self._code.asks:
            missing = cassette.ungraded(grading)
            return Grade.errored(missing.code, missing.message)
        given = cast("Assertion", entry.assertion).grade(context)
        grade = given if isinstance(given, Grade) else await given
        if grade.error is None:
            cassette.keep_grade(grading, grade)
        return grade

    def __getattr__(self, name: str) -> Any:
        """What else is asked of an assertion, such as how long it may take."""
        return getattr(self._entry.assertion, name)
