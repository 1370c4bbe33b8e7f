"""Protocols for trials in which an agent works in a workspace or with tools. The extension `agents` implements them."""

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
    """The sandboxes that are available on this machine. Each is tried on first use."""

    @property
    def warning(self) -> str:
        """Warning about what an agent can do without a sandbox."""

    def choose(self, wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
        """Return the first sandbox that works here and supports the network, or a Failure that says why none does."""

    def problem(self, name: SandboxName) -> str:
        """Return why a sandbox is not available and how to get it; "" if it is."""

    def lines(self) -> tuple[str, ...]:
        """Return lines that list which sandboxes work here."""


class WorkArchive(Protocol):
    """The work of agents that an earlier run stored, for regrading."""

    def work(self, trial: Trial, output: str | None) -> AgentWork | Failure | None:
        """Return the stored work of a trial, None if none exists for this answer, or why it cannot be used.

        Args:
            trial: the trial, identified by its names, because its assertions may have changed.
            output: its recorded answer.
        """


class TrialWork(Protocol):
    """The work of an agent in a trial, such as its workspace and its tools, from before the first call until graded.

    Each call of the trial goes through `request`, `with_usage` and `note`. Then `finish` ends what was started,
    `context` shows the work to assertions, and `checked` and `close` complete the result.
    """

    @property
    def must_call(self) -> bool:
        """Whether to call the target even if its answer is stored, because its model calls are recorded or replayed."""

    @property
    def grades_at_limits(self) -> bool:
        """Whether a trial that reached a limit is graded anyway."""

    def request(self, request: TargetRequest) -> TargetRequest:
        """Return the request with the workspace, tools and limits of the trial."""

    def corrected(self, activity: AgentActivity) -> AgentActivity:
        """Return the activity that an agent reports, corrected by agentv's own counts."""

    def with_usage(
        self, given: TargetResponse | Failure | Awaitable[TargetResponse | Failure]
    ) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Return the result of a call with the usage that agentv counted itself."""

    def note(self, answer: TargetResponse | Failure) -> None:
        """Record the trace and the logs of a call."""

    def restore(self, kept: AgentWork | None) -> None:
        """Use the work that an earlier run stored; None if it stored nothing."""

    def exceeded_limit(self, answer: TargetResponse) -> Failure | None:
        """Return a Failure if an answer exceeds a limit that nothing enforced during the call."""

    def outcome_of(self, answer: Failure) -> TargetResponse | Failure:
        """Return the outcome of a failed call; one that reached a limit may be graded as it is."""

    async def finish(self) -> Failure | None:
        """End what was started and collect the work; return a Failure if it cannot be graded."""

    def context(self, context: AssertionContext) -> AssertionContext:
        """Return the context with the work, or unchanged until `finish` was called."""

    def checked(self, result: TrialResult) -> TrialResult:
        """Return the result, failed or errored if the work does not allow it to pass."""

    async def close(self, result: TrialResult) -> TrialResult:
        """Remove or keep the workspace, and return the result with the work."""

    async def discard(self) -> None:
        """Close what is still open after a trial was aborted."""


class UserReply(Struct, frozen=True):
    """A simulated user's next message, or how the conversation ended; exactly one is set."""

    message: str = ""
    done: UserDone | None = None


class ConversationUser(Protocol):
    """The simulated user of one trial of a case with `user`."""

    @property
    def cost_usd(self) -> float | None:
        """Cost of its messages so far in US dollars; None if unknown."""

    @property
    def token_usage(self) -> TokenUsage | None:
        """Token usage of its messages so far; None if unknown."""

    async def reply(self, transcript: Sequence[Message]) -> UserReply | Failure:
        """Return the user's next reply in a conversation, or a Failure."""


class TrialWorks(Protocol):
    """Opens the work of a run's trials."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Failures after the last trial, such as those of hooks."""

    async def open(self, trial: Trial) -> TrialWork | Failure:
        """Open the work of a trial, or return a Failure."""

    def user(self, trial: Trial) -> ConversationUser:
        """Return the simulated user of a trial of a case with `user`."""

    async def close(self) -> None:
        """End and remove what is left after the run."""


class ModelExchanges(Protocol):
    """The recorded model calls of a run: a cassette."""

    def notes(self) -> Iterable[str]:
        """Return notes for the report at the end of the run."""
