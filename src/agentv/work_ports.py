"""Ports of a trial that is work in a directory; the extension `agents` implements them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agentv.model.run.trial import AgentWork, Trial, TrialResult
from agentv.model.suite.conversation import UserDone
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import AgentActivity
from agentv.model.values.usage import TokenUsage

if TYPE_CHECKING:
    from agentv.model.run.context import AssertionContext


from agentv.ports import TargetRequest


class Sandboxes(Protocol):
    """What can confine agents on this machine. Each is tried when it is first asked for."""

    @property
    def warning(self) -> str:
        """What an agent can do that nothing confines."""

    def choose(self, wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
        """The first that works here and gives the network that is asked for; why none does."""

    def problem(self, name: SandboxName) -> str:
        """Why one is not available, and how to get it; empty: it is."""

    def lines(self) -> tuple[str, ...]:
        """What there is, for people."""


class WorkArchive(Protocol):
    """The work of agents that an earlier run kept, for grading it again."""

    def work(self, trial: Trial, output: str | None) -> AgentWork | Failure | None:
        """What is kept of a trial; None: nothing, or of another answer than this; why it cannot be used.

        Args:
            trial: by its names: its assertions may have changed.
            output: of its recorded answer.
        """


class TrialWork(Protocol):
    """What a trial has besides its calls, from before the first of them to after its grades.

    Such as the workspace and the tools of an agent. A call of the trial passes `request`, `counted` and `note`, then
    `finish` ends what it started, `context` shows the work to assertions, and `judged` and `close` complete its result.
    """

    @property
    def runs_recorded(self) -> bool:
        """Whether the target is called whatever answers are stored, since its model calls are recorded or replayed."""

    @property
    def grades_at_limits(self) -> bool:
        """Whether a trial that reached a limit is graded all the same."""

    def request(self, request: TargetRequest) -> TargetRequest:
        """What the target is asked."""

    def seen(self, activity: AgentActivity) -> AgentActivity:
        """What is shown of an agent's work so far, by what it reports."""

    def counted(
        self, given: TargetResponse | Failure | Awaitable[TargetResponse | Failure]
    ) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """What a call gives, with what it took by our own count."""

    def note(self, answer: TargetResponse | Failure) -> None:
        """Take in what a call shows of the work."""

    def recall(self, kept: AgentWork | None) -> None:
        """Take in what an earlier run kept of the work; None: it kept nothing."""

    def exceeded(self, answer: TargetResponse) -> Failure | None:
        """The limit that an answer passed, though nothing ended it."""

    def limited(self, answer: Failure) -> TargetResponse | Failure:
        """What a failed call comes to: a limit that was reached may be graded as it is."""

    async def finish(self) -> Failure | None:
        """End what was started, and see what it left; why that cannot be graded."""

    def context(self, context: AssertionContext) -> AssertionContext:
        """What assertions see, once it has ended; before, they see nothing of it."""

    def judged(self, result: TrialResult) -> TrialResult:
        """The result as the work lets it stand."""

    async def close(self, result: TrialResult) -> TrialResult:
        """Remove what is left, or keep it; the result with the work."""

    async def discard(self) -> None:
        """Close what is not closed yet: the trial was broken off."""


class UserReply(Struct, frozen=True):
    """What a simulated user says next, or how the conversation has ended; exactly one of the two."""

    message: str = ""
    done: UserDone | None = None


class ConversationUser(Protocol):
    """Who talks with the target in one trial of a case with `user`."""

    @property
    def cost_usd(self) -> float | None:
        """What its messages cost so far, US dollars; None: unknown."""

    @property
    def token_usage(self) -> TokenUsage | None:
        """What its messages took so far; None: unknown."""

    async def reply(self, transcript: Sequence[Message]) -> UserReply | Failure:
        """What it says after a transcript, the last message of which is the target's; why it says nothing."""


class TrialWorks(Protocol):
    """Gives the trials of a run what they have besides their calls."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed after the last trial."""

    async def open(self, trial: Trial) -> TrialWork | Failure:
        """The work of a trial; why it cannot be had."""

    def user(self, trial: Trial) -> ConversationUser:
        """Who talks with the target in a trial of a case with `user`."""

    async def close(self) -> None:
        """The run is over: end and remove what is left."""


class ModelExchanges(Protocol):
    """The recorded model calls of a run: a cassette."""

    def notes(self) -> Iterable[str]:
        """What the report says of them at the end of the run."""
