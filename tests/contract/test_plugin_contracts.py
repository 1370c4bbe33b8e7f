"""Run the suites of `agentv.testing.contract` on built-in targets and on plugins that follow or break the contracts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from agentv.assertions.text.matching import Contains
from agentv.plugins import (
    AssertionContext,
    Ceiling,
    DeclaredAssertion,
    Doc,
    Grade,
    ProviderSettings,
    RunData,
    TargetRequest,
    TargetResponse,
    Text,
    TokenUsage,
)
from agentv.registry.fields import Command
from agentv.targets.cli import Cli
from agentv.targets.mock import Echo
from agentv.testing.contract import AssertionContract, ReportContract, TargetContract


class TestEcho(TargetContract):
    """Echo neither fails nor waits, so two tests of the contract do not apply."""

    test_a_failure_is_a_value_and_the_next_call_is_made = None
    test_a_call_can_be_cancelled = None

    def settings(self) -> ProviderSettings:
        return Echo()


class TestCli(TargetContract):
    def settings(self) -> ProviderSettings:
        return Cli(Command(shell="tr a-z A-Z", cwd="."))

    def expected(self, prompt: str) -> str:
        return prompt.upper()

    def failing(self) -> ProviderSettings:
        return Cli(Command(shell="exit 3", cwd="."))

    def waiting(self) -> ProviderSettings:
        return Cli(Command(shell="sleep 60", cwd="."))


@dataclass(frozen=True, slots=True)
class Capitals(ProviderSettings):
    """A target that answers with the prompt in capitals."""

    short: ClassVar[str | None] = "mark"

    mark: Annotated[Text, Doc("what the answer ends with")] = ""
    tokens: Annotated[int, Doc("what a call takes")] = 2
    most: Annotated[int, Doc("what it says that a call takes at most")] = 10

    def endpoint(self) -> str | None:
        return "capitals.example"

    def ceiling(self, request: TargetRequest) -> Ceiling:
        return Ceiling(tokens=self.most)

    def connect(self, spec: Any, executor: Any) -> Any:
        return Capitalizing(self)


class Capitalizing:
    def __init__(self, settings: Capitals) -> None:
        self.settings = settings

    async def answer(self, request: TargetRequest) -> Any:
        used = TokenUsage(total=self.settings.tokens)
        return TargetResponse(request.prompt.upper() + self.settings.mark, token_usage=used)

    async def close(self) -> None:
        pass


class TestCapitalsWithAnyText(TargetContract):
    """A target whose answer is not known in advance. Like echo, it neither fails nor waits."""

    test_a_failure_is_a_value_and_the_next_call_is_made = None
    test_a_call_can_be_cancelled = None

    def settings(self) -> ProviderSettings:
        return Capitals("?")

    def expected(self, prompt: str) -> None:
        return None


class TestContains(AssertionContract):
    def examples(self):
        return [(Contains("a"), "banana", True), (Contains("x"), "banana", False)]


def tap(run: RunData) -> Iterator[str]:
    for row in run.rows:
        yield f"{row['status']} {row['test_id']}\n"


class TestTap(ReportContract):
    def render(self, run: RunData) -> Iterator[str]:
        return tap(run)


class InvalidRow(Capitalizing):
    async def answer(self, request: TargetRequest) -> Any:
        return "text"


class Raising(Capitalizing):
    async def answer(self, request: TargetRequest) -> Any:
        raise ValueError("no")


class OfAnother(Capitalizing):
    last = ""

    async def answer(self, request: TargetRequest) -> Any:
        said, OfAnother.last = OfAnother.last, request.prompt.upper()
        return TargetResponse(said)


class ClosedOnce(Capitalizing):
    closed = False

    async def close(self) -> None:
        assert not self.closed, "closed again"
        self.closed = True


def contract_of(target: type[Capitalizing] = Capitalizing, **settings: Any) -> TargetContract:
    kind = type("Capitals", (Capitals,), {"__slots__": (), "__doc__": "A.", "connect": lambda self, *_: target(self)})

    class Of(TargetContract):
        def settings(self) -> ProviderSettings:
            return kind(**settings)

        def expected(self, prompt: str) -> str:
            return prompt.upper()

        def failing(self) -> ProviderSettings:
            return kind(**settings)

        waiting = failing

    return Of()


@pytest.mark.parametrize(
    ("contract", "test", "why"),
    [
        (contract_of(InvalidRow), "test_it_answers_with_text", "expected a TargetResponse, got 'text'"),
        (contract_of(OfAnother), "test_calls_at_once_do_not_mix", "to 'prompt 0' it answered ''"),
        (contract_of(ClosedOnce), "test_it_can_be_closed_twice_used_or_not", "closed again"),
        (contract_of(tokens=11), "test_an_answer_stays_within_the_ceiling", "took 11 tokens, above its ceiling 10"),
        (contract_of(), "test_a_failure_is_a_value_and_the_next_call_is_made", "expected a Failure"),
        (contract_of(), "test_a_call_can_be_cancelled", "the call answered"),
    ],
)
def test_a_target_that_breaks_the_contract_is_found(contract, test, why):
    with pytest.raises(AssertionError, match=why):
        getattr(contract, test)()


def test_a_target_that_raises_is_found():
    with pytest.raises(ValueError, match="no"):
        contract_of(Raising).test_it_answers_with_text()


@pytest.mark.parametrize(
    ("fact", "value"), [("endpoint", lambda _: 1), ("free", 1), ("ceiling", lambda *_: None), ("refuses", lambda *_: 1)]
)
def test_facts_of_a_wrong_type_are_found(fact, value):
    contract = contract_of()
    wrong = type("Capitals", (type(contract.settings()),), {"__slots__": (), fact: value})
    contract.settings = wrong  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match=f"{fact}.* returned"):
        contract.test_its_facts_have_the_right_types()


@dataclass(frozen=True, slots=True)
class Broken(DeclaredAssertion):
    """An assertion that breaks one rule at a time."""

    how: Annotated[str, Doc("which")] = ""

    def grade(self, context: AssertionContext) -> Any:
        if self.how == "raises":
            return Grade.of(context.output[0] == "a", "begins with a")
        return True if self.how == "bool" else Grade.of(self.how == "passes", "fixed")


@dataclass
class Unfrozen(DeclaredAssertion):
    value: str = ""

    def grade(self, context: AssertionContext) -> Grade:
        return Grade.of(True, "a")


@pytest.mark.parametrize(
    ("options", "test", "error"),
    [
        (Broken("raises"), "test_no_answer_makes_it_raise", IndexError),
        (Broken("passes"), "test_no_answer_is_an_error_and_no_verdict", AssertionError),
        (Broken("bool"), "test_it_passes_and_fails_as_the_examples_say", AssertionError),
        (Broken("passes"), "test_it_passes_and_fails_as_the_examples_say", AssertionError),
        (Unfrozen(), "test_options_are_declared_well", AssertionError),
    ],
)
def test_an_assertion_that_breaks_the_contract_is_found(options, test, error):
    class Of(AssertionContract):
        def examples(self):
            return [(options, "a", True), (options, "b", False)]

    with pytest.raises(error):
        getattr(Of(), test)()


def test_a_report_that_breaks_the_contract_is_found():
    counted = iter(range(9))

    class Of(ReportContract):
        def render(self, run: RunData) -> str:
            return f"{next(counted)}"

    with pytest.raises(AssertionError, match="a second report"):
        Of().test_it_is_pure()
