"""Contract suites: tests that every plugin must pass, for plugin authors to run with pytest.

Subclass `TargetContract`, `AssertionContract` or `ReportContract` in a class whose name begins with `Test`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, get_type_hints

from msgspec import to_builtins

from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.row import Row
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import FileBlock, ImageBlock, Message, TextBlock
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import Ceiling
from agentv.model.values.values import Json
from agentv.ports import Target, TargetRequest
from agentv.registry.fields import Declared, DeclaredAssertion, Doc, options_of
from agentv.registry.types import ProviderSettings, RunData
from agentv.user_code.threads import DaemonThreads

__all__ = ["AssertionContract", "ReportContract", "TargetContract"]

T = TypeVar("T")

AT_ONCE = 20
"""Number of concurrent calls."""

LIMIT_S = 30.0
"""Time limit of one test, in seconds."""


class TargetContract:
    """Tests of one target. Override `settings`, and `failing` and `waiting` if the target supports them.

    Tests without settings are skipped.
    """

    def settings(self) -> ProviderSettings:
        """Settings of a target that answers."""
        raise NotImplementedError("override settings(): settings of a target that answers")

    def prompt(self, number: int) -> str:
        """The prompt of a call, different for each number."""
        return f"prompt {number}"

    def expected(self, prompt: str) -> str | None:
        """The answer to a prompt, after any transformation by the target; None accepts any text."""
        return prompt

    def failing(self) -> ProviderSettings | None:
        """Settings of a target whose calls all fail, such as a port without a server; None to skip its test."""
        return None

    def waiting(self) -> ProviderSettings | None:
        """Settings of a target that takes a minute to answer; None to skip its test."""
        return None

    def test_settings_are_declared_well(self) -> None:
        """Settings are a frozen, documented dataclass that can be pickled."""
        check_declaration(self.settings())

    def test_it_answers_with_text(self) -> None:
        """A call returns a TargetResponse with the answer."""
        [found] = self._answers(self.settings(), 1)
        assert isinstance(found, TargetResponse), f"expected a TargetResponse, got {found!r}"
        self._check_text(found, self.prompt(0))

    def test_calls_at_once_do_not_mix(self) -> None:
        """Each of several concurrent calls gets its own answer."""
        found = self._answers(self.settings(), AT_ONCE)
        for number, one in enumerate(found):
            assert isinstance(one, TargetResponse), f"expected a TargetResponse, got {one!r}"
            self._check_text(one, self.prompt(number))

    def test_it_can_be_closed_twice_used_or_not(self) -> None:
        """A target can be closed twice, even if it was never called."""

        async def close(calls: int) -> None:
            async with _opened(self.settings()) as target:
                for number in range(calls):
                    await _answer_of(target, self._request(number))
                await target.close()

        _run(close(0))
        _run(close(1))

    def test_its_facts_have_the_right_types(self) -> None:
        """`endpoint`, `free`, `elsewhere`, `refuses` and `ceiling` have the types that the engine expects."""
        settings = self.settings()
        facts: dict[str, tuple[object, type | tuple[type, ...]]] = {
            "endpoint()": (settings.endpoint(), (str, type(None))),
            "elsewhere()": (settings.elsewhere(), (str, type(None))),
            "free": (settings.free, bool),
            "ceiling()": (settings.ceiling(self._request(0)), Ceiling),
        }
        for block in (TextBlock("a"), ImageBlock("a.png"), FileBlock("a.txt", "a.txt", "a")):
            facts[f"refuses({type(block).__name__})"] = settings.refuses(block), (str, type(None))
        for name, (value, kind) in facts.items():
            assert isinstance(value, kind), f"{name} returned {value!r}"
        assert settings.endpoint() == self.settings().endpoint(), "equal settings must name one endpoint"
        assert settings.refuses(TextBlock("a")) is None, "every target takes text"

    def test_an_answer_stays_within_the_ceiling(self) -> None:
        """An answer costs at most the ceiling, which a budget reserves before the call."""
        settings = self.settings()
        ceiling = settings.ceiling(self._request(0))
        [found] = self._answers(settings, 1)
        assert isinstance(found, TargetResponse), f"expected a TargetResponse, got {found!r}"
        usage = found.token_usage
        tokens = usage.total if usage is not None else None
        if ceiling.usd is not None and found.cost_usd is not None:
            assert found.cost_usd <= ceiling.usd, f"it cost {found.cost_usd}, above its ceiling {ceiling.usd}"
        if ceiling.tokens is not None and tokens is not None:
            assert tokens <= ceiling.tokens, f"it took {tokens} tokens, above its ceiling {ceiling.tokens}"
        if settings.free:
            assert not found.cost_usd, f"it says that it is free, and cost {found.cost_usd}"

    def test_a_failure_is_a_value_and_the_next_call_is_made(self) -> None:
        """A call that fails returns a Failure instead of raising, and so does the next call."""
        for one in self._answers(_given_or_skip(self.failing(), "failing"), 2):
            assert isinstance(one, Failure), f"expected a Failure, got {one!r}"
            assert one.code, "a failure needs a code"
            assert one.message, "a failure needs a message"

    def test_a_call_can_be_cancelled(self) -> None:
        """A cancelled call ends, and the target can then be closed."""
        settings = _given_or_skip(self.waiting(), "waiting")

        async def cancelled() -> bool:
            async with _opened(settings) as target:
                call = asyncio.ensure_future(_answer_of(target, self._request(0)))
                await asyncio.sleep(0.05)
                call.cancel()
                await asyncio.wait([call])
            return call.cancelled()

        assert _run(cancelled()), "the call answered, though it was cancelled"

    def _check_text(self, found: TargetResponse, prompt: str) -> None:
        assert isinstance(found.output, str), f"the answer is {found.output!r}, which is not text"
        wanted = self.expected(prompt)
        assert wanted is None or found.output == wanted, f"to {prompt!r} it answered {found.output!r}, not {wanted!r}"

    def _request(self, number: int) -> TargetRequest:
        prompt = self.prompt(number)
        return TargetRequest(str(number), prompt, (Message("user", prompt),), timeout_s=LIMIT_S, env=dict(os.environ))

    def _answers(self, settings: ProviderSettings, count: int) -> list[TargetResponse | Failure]:
        """The results of concurrent calls."""

        async def asked() -> list[TargetResponse | Failure]:
            async with _opened(settings) as target:
                return await asyncio.gather(*(_answer_of(target, self._request(number)) for number in range(count)))

        return _run(asked())


@asynccontextmanager
async def _opened(settings: ProviderSettings) -> AsyncIterator[Target]:
    executor = DaemonThreads()
    target = settings.connect(TargetSpec("target", "provider", settings), executor)
    try:
        yield target
    finally:
        await target.close()
        await executor.aclose()


async def _answer_of(target: Target, request: TargetRequest) -> TargetResponse | Failure:
    answer = target.answer(request)
    return await answer if inspect.isawaitable(answer) else answer


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


def _given_or_skip(settings: ProviderSettings | None, name: str) -> ProviderSettings:
    if settings is None:
        import pytest

        pytest.skip(f"{name}() gives no settings")
    return settings


def check_declaration(declared: Declared) -> None:
    """Check the class of options, and that instances can be compared and pickled.

    Raises:
        AssertionError: something is wrong; the message says what.
    """
    cls = type(declared)
    parameters = getattr(cls, "__struct_config__", None) or getattr(cls, "__dataclass_params__", None)
    assert parameters is not None, f"{cls.__name__} must be a dataclass"
    assert parameters.frozen, f"{cls.__name__} must be frozen: @dataclass(frozen=True, slots=True)"
    text = (cls.__doc__ or "").strip()
    assert text, f"{cls.__name__} must have a docstring: its first line is the description"
    assert not text.startswith(f"{cls.__name__}("), f"{cls.__name__} must have a docstring of its own"
    hints = get_type_hints(cls, include_extras=True)
    for name in options_of(cls):
        assert any(isinstance(about, Doc) for about in getattr(hints[name], "__metadata__", ())), (
            f"{cls.__name__}.{name} must say what it means: Annotated[…, Doc('…')]"
        )
    assert list(declared.validate()) == [], "these options must be right"
    assert pickle.loads(pickle.dumps(declared)) == declared, "options must survive pickle"  # noqa: S301


ODD_TEXTS = ("", " ", "\n\n", "\x00", "é\u0301\u202e", "{{ x }}", "a" * 100_000, '{"a": [1, 2]}', "-" * 1000)
"""Unexpected answers that a model may give."""


class AssertionContract:
    """Tests of one assertion type that grades the answer's text. Override `examples`."""

    def examples(self) -> Sequence[tuple[DeclaredAssertion, str, bool]]:
        """Examples of options, an answer, and whether it passes: at least one that passes and one that fails."""
        raise NotImplementedError("override examples(): (options, answer, whether it passes)")

    def context(self, output: str | None) -> AssertionContext:
        """The context to grade an answer in."""
        return AssertionContext((Message("user", "question"),), output)

    def test_options_are_declared_well(self) -> None:
        """Options are a frozen, documented dataclass that can be pickled."""
        for options, _, _ in self.examples():
            check_declaration(options)
            assert isinstance(options.label(), str), "label() must return text"

    def test_it_passes_and_fails_as_the_examples_say(self) -> None:
        """Each example's answer gets the expected verdict."""
        found = self.examples()
        assert {passes for _, _, passes in found} == {True, False}, "give an example that passes and one that fails"
        for options, output, passes in found:
            grade = self._graded(options, output)
            assert grade.error is None, f"{output!r} errored: {grade.error}"
            assert grade.passed is passes, f"{output!r} with {options} gave {grade}"

    def test_no_answer_is_an_error_and_no_verdict(self) -> None:
        """A missing answer neither passes nor fails: the grade is `Grade.errored`."""
        for options, _, _ in self.examples():
            assert self._graded(options, None).error is not None, "without an answer it must return Grade.errored(…)"

    def test_no_answer_makes_it_raise(self) -> None:
        """Any text from a model gets a score between 0 and 1."""
        for options, _, _ in self.examples():
            for text in ODD_TEXTS:
                grade = self._graded(options, text)
                assert 0 <= grade.score <= 1, f"the score is {grade.score}"

    def test_it_is_stateless(self) -> None:
        """Grading the same answer twice gives the same grade."""
        for options, output, _ in self.examples():
            assert self._graded(options, output) == self._graded(options, output), "a second grade differs"

    def _graded(self, options: DeclaredAssertion, output: str | None) -> Grade:
        grade: Any = getattr(options, "grade")(self.context(output))  # noqa: B009  # declared by each subclass
        if inspect.isawaitable(grade):
            grade = asyncio.run(_awaited(grade))
        assert isinstance(grade, Grade), f"grade() must return a Grade, and returned {grade!r}"
        return grade


async def _awaited(grade: Any) -> Any:
    return await grade


_ROW = Row(
    test_id="greeting",
    suite="greetings",
    eval_path="evals/greetings.eval.yaml",
    target="echo",
    timestamp="2026-11-21T14:03:22Z",
    status="passed",
    score=1.0,
    output="hello <b>&\n",
    duration_ms=12.5,
    key="0",
)

ROW: Mapping[str, Json] = to_builtins(_ROW)
"""A row of a passed trial."""

ROWS: tuple[Mapping[str, Json], ...] = (
    ROW,
    {**ROW, "test_id": "farewell | ünï", "status": "failed", "score": 0.0},
    {
        **ROW,
        "test_id": "broken",
        "status": "errored",
        "score": None,
        "output": None,
        "error": {"code": "timeout", "message": "no answer after 300 s", "retryable": True},
    },
)
"""Rows of a passed, a failed and an errored trial."""


class ReportContract:
    """Tests of one report. Override `render`."""

    def render(self, run: RunData) -> str | Iterable[str]:
        """The report under test."""
        raise NotImplementedError("override render(): return your_report(run)")

    def test_it_writes_a_run(self) -> None:
        """A run with passed, failed and errored trials gives a non-empty report."""
        assert self._text(ROWS).strip(), "the report is empty"

    def test_it_writes_a_run_without_trials(self) -> None:
        """A run that ended before its first trial can be reported."""
        self._text(())

    def test_it_is_pure(self) -> None:
        """Two reports of the same run are equal."""
        assert self._text(ROWS) == self._text(ROWS), "a second report of the same run differs"

    def _text(self, rows: Iterable[Mapping[str, Json]]) -> str:
        given = self.render(RunData("20261121T140322Z-7f3a", {"suites": []}, {"schema_version": 1}, iter(rows)))
        pieces = [given] if isinstance(given, str) else list(given)
        assert all(isinstance(one, str) for one in pieces), "a report gives text, in one piece or several"
        return "".join(pieces)
