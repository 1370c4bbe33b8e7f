"""Requirements for every target, as tests that a subclass inherits."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import FileBlock, ImageBlock, Message, TextBlock
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import Ceiling
from agentv.ports import Target, TargetRequest
from agentv.registry.types import ProviderSettings
from agentv.testing.contract.assertions import check_declaration
from agentv.user_code.threads import DaemonThreads

T = TypeVar("T")

AT_ONCE = 20
"""Calls that are made at the same time."""

LIMIT_S = 30.0
"""Seconds that one test may take."""


class TargetContract:
    """Tests of one target. Override `settings`, and the others where the target can do what they ask.

    A test whose settings are not given is skipped.
    """

    def settings(self) -> ProviderSettings:
        """Settings of a target that answers."""
        raise NotImplementedError("override settings(): settings of a target that answers")

    def prompt(self, number: int) -> str:
        """The prompt of a call; each number gives another one."""
        return f"prompt {number}"

    def expected(self, prompt: str) -> str | None:
        """The answer to a prompt, after any transformation by the target; None: not predictable, any text is right."""
        return prompt

    def failing(self) -> ProviderSettings | None:
        """Settings of a target whose calls all fail, such as a port without a server."""
        return None

    def waiting(self) -> ProviderSettings | None:
        """Settings of a target that takes a minute to answer."""
        return None

    def test_settings_are_declared_well(self) -> None:
        """They are a frozen dataclass, documented, and can be pickled."""
        check_declaration(self.settings())

    def test_it_answers_with_text(self) -> None:
        """A call gives a TargetResponse with the answer."""
        [found] = self._answers(self.settings(), 1)
        assert isinstance(found, TargetResponse), f"expected a TargetResponse, got {found!r}"
        self._check_text(found, self.prompt(0))

    def test_calls_at_once_do_not_mix(self) -> None:
        """Each of several calls at the same time gets its own answer."""
        found = self._answers(self.settings(), AT_ONCE)
        for number, one in enumerate(found):
            assert isinstance(one, TargetResponse), f"expected a TargetResponse, got {one!r}"
            self._check_text(one, self.prompt(number))

    def test_it_can_be_closed_twice_used_or_not(self) -> None:
        """Closing again does nothing, and closing what was never asked neither."""

        async def close(calls: int) -> None:
            executor = DaemonThreads()
            target = self._connected(self.settings(), executor)
            for number in range(calls):
                await _given(target, self._request(number))
            await target.close()
            await target.close()
            await executor.aclose()

        _run(close(0))
        _run(close(1))

    def test_its_facts_have_the_right_types(self) -> None:
        """`endpoint`, `free`, `elsewhere`, `refuses` and `ceiling` answer with what the engine expects."""
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
        """A budget reserves the ceiling before the call; an answer that takes more would overspend it."""
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
        """Errors outside agentv are returned, never raised."""
        for one in self._answers(_given_or_skip(self.failing(), "failing"), 2):
            assert isinstance(one, Failure), f"expected a Failure, got {one!r}"
            assert one.code, "a failure needs a code"
            assert one.message, "a failure needs a message"

    def test_a_call_can_be_cancelled(self) -> None:
        """A cancelled call ends, and the target can be closed then."""
        settings = _given_or_skip(self.waiting(), "waiting")

        async def cancelled() -> bool:
            executor = DaemonThreads()
            target = self._connected(settings, executor)
            call = asyncio.ensure_future(_given(target, self._request(0)))
            await asyncio.sleep(0.05)
            call.cancel()
            await asyncio.wait([call])
            await target.close()
            await executor.aclose()
            return call.cancelled()

        assert _run(cancelled()), "the call answered, though it was cancelled"

    def _check_text(self, found: TargetResponse, prompt: str) -> None:
        assert isinstance(found.output, str), f"the answer is {found.output!r}, which is not text"
        wanted = self.expected(prompt)
        assert wanted is None or found.output == wanted, f"to {prompt!r} it answered {found.output!r}, not {wanted!r}"

    def _request(self, number: int) -> TargetRequest:
        prompt = self.prompt(number)
        return TargetRequest(str(number), prompt, (Message("user", prompt),), timeout_s=LIMIT_S, env=dict(os.environ))

    def _connected(self, settings: ProviderSettings, executor: DaemonThreads) -> Target:
        return settings.connect(TargetSpec("target", "provider", settings), executor)

    def _answers(self, settings: ProviderSettings, count: int) -> list[TargetResponse | Failure]:
        """What the target answers to calls that are made at once."""

        async def asked() -> list[TargetResponse | Failure]:
            executor = DaemonThreads()
            target = self._connected(settings, executor)
            try:
                return await asyncio.gather(*(_given(target, self._request(number)) for number in range(count)))
            finally:
                await target.close()
                await executor.aclose()

        return _run(asked())


async def _given(target: Target, request: TargetRequest) -> TargetResponse | Failure:
    answer = target.answer(request)
    return await answer if inspect.isawaitable(answer) else answer


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


def _given_or_skip(settings: ProviderSettings | None, name: str) -> ProviderSettings:
    if settings is None:
        import pytest

        pytest.skip(f"{name}() gives no settings")
    return settings
