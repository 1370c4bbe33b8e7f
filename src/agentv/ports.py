"""Protocols between packages, so that no package imports a sibling. Those for grading are in `model.run.context`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct, field

from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import GatewayAccess, McpServer
from agentv.model.suite.workspace import Network, SandboxName, WorkspaceCommand
from agentv.model.values.message import Message
from agentv.model.values.response import Attempt, Embeddings, Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, UsageStep, WorkspaceChanges
from agentv.model.values.values import EMPTY, Json, JsonObject, PartlyShown

if TYPE_CHECKING:
    from asyncio import Future  # validation does not need asyncio


T = TypeVar("T")


class Sandbox(Protocol):
    """A sandbox, which confines the programs of one trial to its workspace."""

    @property
    def name(self) -> SandboxName:
        """The kind of sandbox."""

    @property
    def home(self) -> str:
        """HOME of the agent: a directory of its own, or the user's if the suite says so."""

    @property
    def network(self) -> Network:
        """The network of its programs. `loopback` is a network of their own, with no way out but `forwarding`."""

    def forwarding(self, forwards: Mapping[int, str]) -> Sandbox:
        """Return the same sandbox with ports on 127.0.0.1 that lead to Unix sockets; only for network `loopback`.

        Args:
            forwards: port → absolute path of a socket that is visible in the sandbox, such as one in HOME.
        """

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """Return the command line that runs `argv` confined, in `cwd` (absolute) or in the workspace if it is empty."""

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """Return the complete environment of the agent.

        Args:
            env: variables that the suite, the workspace and the target set.
            named: names of variables that the target passes on from this process.
        """


class Workspace(Protocol):
    """The workspace of one trial, from its baseline to its removal. Methods are called in the order listed here."""

    @property
    def path(self) -> str:
        """Absolute path of the directory that the agent works in."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of the agent."""

    async def finish(self) -> WorkspaceChanges | Failure:
        """End the agent's processes, copy the hidden files in, and return what the agent changed."""

    async def run(self, command: WorkspaceCommand, stdin: bytes = b"") -> ProgramResult | Failure:
        """Run a grader's command in the final workspace, confined as the agent was, without the agent's HOME."""

    async def restore_test_config(self, allowed: Sequence[str]) -> tuple[str, ...] | Failure:
        """Undo the agent's changes to test configuration, except in files that match `allowed`; return the paths."""

    async def run_failing_tests(
        self, command: WorkspaceCommand, reports: Sequence[str]
    ) -> FailingTests | Failure | None:
        """Repeat a command in the state before it ran, with the hidden tests replaced by ones that must fail.

        Returns None if there are no such tests.

        Args:
            command: a command that has run.
            reports: paths of its possible report files; the first that exists counts.
        """

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, up to the size shown in a diff, or the target of a link; None if missing.

        Blocks.
        """

    async def copy_for_judge(self) -> JudgeWorkspace | Failure:
        """Return a copy of the final workspace for a judge; files that would instruct the judge's agent are renamed."""

    async def has_hash(self, sha256: str) -> bool:
        """Return whether the workspace still has the hash of a copy that was made for a judge."""

    async def close(self, *, keep: bool) -> str | Failure | None:
        """Run the final hooks and remove the workspace; return its path if it is kept instead."""


class JudgeWorkspace(Struct, frozen=True):
    """A copy of a workspace for an agent that judges the files in it.

    Attributes:
        path: absolute path.
        sandbox: what confines the judge to the copy.
        sha256: hash of the files that were copied.
        max_turns: maximum number of the judge's model calls for one verdict; None: as set by its target.
    """

    path: str
    sandbox: Sandbox
    sha256: str
    max_turns: int | None = None


class ProgramResult(Struct, frozen=True):
    """The result of a program that was not stopped by agentv; `status` is negative if a signal ended it."""

    status: int
    stdout: bytes
    stderr: bytes


class FailingTests(Struct, frozen=True):
    """The outcome of a command that ran hidden tests which must fail.

    Attributes:
        ended: result of the command.
        names: `module::function` of each test in Python.
        loaded: whether the tests were loaded.
        report: content of the report, or None.
        cheated: what the code under test did to make tests in Python pass; empty if nothing.
    """

    ended: ProgramResult
    names: frozenset[str] = frozenset()
    loaded: bool = True
    report: bytes | None = None
    cheated: str = ""


USER = "user"
"""Part of the `suite` of a request whose answer is the message of a simulated user."""


class TargetRequest(PartlyShown, frozen=True):
    """One call of a target.

    Attributes:
        prompt: the messages as one text.
        prompt_id: id of the suite's prompt that the messages come from; None if they are the case's own.
        env: complete environment of the processes of this call.
        timeout_s: time limit in seconds; the engine stops waiting then, and a target may stop earlier.
        turn: number of the turn in its case, from 1; None for a case without `turns`.
        temperature: the temperature that a judge's rubric sets; None: the target's own setting.
        suite: name of the suite, with a hash of the environment that it sets, because suites may share a name. For a
            call of a simulated user, also `USER` and the name of the target that the user talks with.
        nonces: texts in the messages that are new for each call, such as a judge's markers.
        workspace_path: directory that the agent works in; None: the case has no workspace.
        sandbox: confines the programs of this call to the workspace; None: they are not confined.
        mcp_servers: the scripted tools of the case, for an agent.
        variant: name of the agent's variant.
        max_turns, max_tool_calls: limits of the agent's trial. A target that can enforce them itself does so sooner.
        gateway: access to the agent's model through the gateway; None: the agent uses its own settings.
        on_activity: called with the agent's work so far, whenever it changes.
        interruption: done when the run is interrupted: the target then ends the agent gracefully and returns a failure
            `interrupted` with the trace so far. None: the call cannot be interrupted.
        workspace_key: hash of the definition of the workspace, the variant and the tools; empty without a workspace.
        root: absolute path of the repository; the key of the call has paths of attached files relative to it.
        schema: JSON Schema of the answer in the strict form that model APIs require: every object closed, every
            property required. Targets that cannot enforce it ignore it.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"env", "interruption"})

    case_id: str
    prompt: str
    messages: tuple[Message, ...]
    vars: JsonObject = field(default=EMPTY)
    metadata: JsonObject = field(default=EMPTY)
    attempt: int = 1
    sample: int = 1
    timeout_s: float = 300.0
    env: Mapping[str, str] = field(default_factory=dict)
    workspace_path: str | None = None
    sandbox: Sandbox | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    variant: str | None = None
    prompt_id: str | None = None
    temperature: float | None = None
    turn: int | None = None
    schema: JsonObject | None = None
    suite: str = ""
    nonces: tuple[str, ...] = ()
    root: str = ""
    workspace_key: str = ""
    max_turns: int | None = None
    max_tool_calls: int | None = None
    gateway: GatewayAccess | None = None
    on_activity: Callable[[AgentActivity], None] | None = None
    interruption: Future[None] | None = None


class Target(Protocol):
    """A system under test, connected. Every implementation passes `tests/contract/test_targets.py`."""

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Make one call. Errors outside agentv are returned as a Failure, never raised."""

    async def close(self) -> None:
        """Close connections and end processes."""


@runtime_checkable
class SessionTarget(Protocol):
    """A target that keeps a session between the turns of a trial."""

    async def end_session(self, request: TargetRequest) -> None:
        """End the session and the agent of a request's trial, which makes no more calls; without one, do nothing."""


@runtime_checkable
class Embedder(Protocol):
    """A target whose API also computes embeddings."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the vectors of the texts, in order. Errors outside agentv are returned, never raised."""


class Connectable(Protocol):
    """Settings of a provider that can connect to the system that they describe."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that is ready for calls. Nothing is started before its first call."""


Handler = Callable[[str, Sequence[Any]], Awaitable[Any]]
"""Handles a request of user code during a call: (name, arguments) → a plain value. Raises LookupError."""

Role = Literal["tested", "grading", "world", "authoring"]
"""The role of user code in a run. No two roles share a process, so that a target cannot replace its grader."""


class CodeCall(PartlyShown, frozen=True):
    """One call of a user's function.

    Attributes:
        adapter: `package.module:name` of a function of agentv that runs in the worker. It is called with the user's
            function (None if `file` and `module` are None) and the payload, and returns a value or an awaitable.
        function: name in `file` or `module`, dotted for a method.
        code: code of the failure if the function raises.
        what: name of the code in messages.
        directory: first entry of `sys.path`; empty: the directory of the file.
        env: the environment of the worker; None: that of this process.
        handler: handles requests of the call to this process.
        processes: maximum number of workers for calls of the function, if they turn out to be CPU-bound.
        continues: whether it continues an earlier call, so that only the same worker can run it.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"env", "handler"})

    role: Role
    adapter: str
    payload: Any
    code: str
    what: str
    function: str = ""
    file: str | None = None
    module: str | None = None
    directory: str = ""
    env: Mapping[str, str] | None = None
    handler: Handler | None = None
    processes: int = 1
    continues: bool = False


class Returned(Struct, frozen=True):
    """The value that a call returned, its duration in milliseconds, and earlier attempts whose worker died."""

    value: Any
    duration_ms: float = 0.0
    attempts: tuple[Attempt, ...] = ()


class Raised(Failure, frozen=True):
    """The failure of a call. `cause` is the text of the exception; `attempts` are those whose worker died."""

    cause: str = ""
    attempts: tuple[Attempt, ...] = ()


class Executor(Protocol):
    """Runs user functions, so that one that hangs or blocks does not delay others.

    A call starts when it is made, not when it is first awaited. Otherwise, of many calls made in one iteration of the
    event loop, none would start before the last was made.
    """

    def call(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run the function on a new thread. If cancelled, the thread continues as a daemon."""

    def python(self, call: CodeCall) -> Awaitable[Returned | Raised]:
        """Call a user's function in a worker process."""


class JavaScriptHost(Protocol):
    """The long-lived process that runs users' TypeScript and JavaScript."""

    async def call(self, source: str, payload: Mapping[str, Json], timeout_s: float) -> Json | Failure:
        """Call a function or evaluate an expression, and return its plain value or a Failure."""

    async def grade(self, file: str, payload: Mapping[str, Json], timeout_s: float) -> JsonObject | Failure:
        """Grade the payload with the default export of `file`, and return its plain result or a Failure."""


class Clock(Protocol):
    """The source of time, which tests replace."""

    def monotonic(self) -> float:
        """Return the seconds since some fixed point."""

    def utc(self) -> datetime:
        """Return the current date and time in UTC."""


class Reader(Protocol):
    """File access of the loader. Records the files that it reads, for `run.json`."""

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: the file cannot be read.
        """


class Call(Struct, frozen=True):
    """A call whose answer is stored, or looked up in a store.

    Attributes:
        key: hash of what determines the answer.
        target: name of the called target or judge.
        request: what is sent to it.
    """

    key: str
    target: str
    request: TargetRequest


class SpendingLog(Protocol):
    """Record of the cost of agents' model calls, written as soon as each has ended."""

    def spend(self, case_id: str, target: str, call: UsageStep, trial: str = "") -> None:
        """Record the usage of one call; `trial` is the trial's key."""


class AnswerArchive(Protocol):
    """Store of answers for later runs."""

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return the stored answer to a call, or None."""

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store the answer to a call."""


class AnswerLookup(Protocol):
    """Stored answers for the calls of a trial: a store, or a connection to one on another machine."""

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store an answer before it is used."""

    def stored_answer(self, call: Call) -> TargetResponse | Awaitable[TargetResponse | None] | None:
        """Return the stored answer, or None."""
