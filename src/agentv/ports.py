"""Ports between packages: Protocols, so that no package imports a sibling. `model.run.context` has those of grading."""

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
    from asyncio import Future  # which validation does without


T = TypeVar("T")


class Sandbox(Protocol):
    """What confines the programs of one trial to its workspace."""

    @property
    def name(self) -> SandboxName:
        """The sandbox in use."""

    @property
    def home(self) -> str:
        """HOME of the agent: a directory of its own, or the user's where the suite says so."""

    @property
    def network(self) -> Network:
        """The network of its programs; `loopback`: one of their own, which leads out only through `forwarding`."""

    def forwarding(self, forwards: Mapping[int, str]) -> Sandbox:
        """The same sandbox, with ports on 127.0.0.1 that lead to Unix sockets of ours; only for network `loopback`.

        Args:
            forwards: port → absolute path of a socket that its programs can see, such as one in HOME.
        """

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """The command line that runs `argv` confined; `cwd` is absolute, empty: the workspace."""

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """The complete environment of the agent.

        Args:
            env: variables that the suite, the workspace and the target set.
            named: variables of this process that the target passes on by name.
        """


class Workspace(Protocol):
    """The workspace of one trial, from its baseline to its removal. Its calls come in the order in which they stand."""

    @property
    def path(self) -> str:
        """Absolute path of the directory that the agent works in."""

    @property
    def sandbox(self) -> Sandbox:
        """What confines the agent."""

    async def finish(self) -> WorkspaceChanges | Failure:
        """End all processes of the agent, compare with the baseline, then copy the hidden files in."""

    async def run(self, command: WorkspaceCommand, stdin: bytes = b"") -> ProgramResult | Failure:
        """Run a grader's command in the final workspace, confined as the agent was, without the agent's HOME."""

    async def restore_test_config(self, allowed: Sequence[str]) -> tuple[str, ...] | Failure:
        """Undo what the agent changed in how tests run, except in files that some globs name; the paths."""

    async def run_failing_tests(
        self, command: WorkspaceCommand, reports: Sequence[str]
    ) -> FailingTests | Failure | None:
        """Run a command once more, with hidden tests that must fail, in the state before it ran; None without any.

        Args:
            command: that ran already.
            reports: paths of the files that it may write, of which the first counts.
        """

    def read(self, path: str) -> bytes | None:
        """What is in a file, at most what a diff shows of it, or where a link leads; None: no such file. It blocks."""

    async def copy_for_judge(self) -> JudgeWorkspace | Failure:
        """A copy of the final workspace that an agent can look at as a judge, which takes no file in it for its own."""

    async def is_as(self, sha256: str) -> bool:
        """Whether the workspace is still what a copy for a judge was made of."""

    async def close(self, *, keep: bool) -> str | Failure | None:
        """Run the hooks that come last, and remove it; the path where it is kept."""


class JudgeWorkspace(Struct, frozen=True):
    """A copy of a workspace, for an agent that judges what lies in it.

    Attributes:
        path: absolute.
        sandbox: what confines the judge to the copy.
        sha256: of the files that it was made of.
        max_turns: model calls of the judge for one verdict; None: as its target says.
    """

    path: str
    sandbox: Sandbox
    sha256: str
    max_turns: int | None = None


class ProgramResult(Struct, frozen=True):
    """A program that ended by itself; `status` is negative where a signal ended it."""

    status: int
    stdout: bytes
    stderr: bytes


class FailingTests(Struct, frozen=True):
    """What a command did with hidden tests that must fail.

    Attributes:
        names: `module::function` of each that is written in Python.
        loaded: they were loaded.
        report: content of the report; None without one.
        cheated: what the code under test did to the tests in Python; empty: nothing.
    """

    ended: ProgramResult
    names: frozenset[str] = frozenset()
    loaded: bool = True
    report: bytes | None = None
    cheated: str = ""


USER = "user"
"""In the `suite` of a request: its answer is what a simulated user says."""


class TargetRequest(PartlyShown, frozen=True):
    """One call of a target.

    Attributes:
        prompt: the messages as one text.
        prompt_id: of the suite's prompt that gave the messages; None where the case gave them.
        env: the environment that processes of this call get, complete.
        timeout_s: seconds that the call may take; the engine stops waiting then, a target may stop earlier.
        expected_output: the reference answer as text, for recordings; never shown to the system under test.
        turn: which turn of its case this is, from 1; None for a case without `turns`.
        temperature: what a judge's rubric asks for; None: the target's own setting.
        suite: whose case it is, with a hash of the environment that it sets: two suites may say the same of themselves;
            of a simulated user's call with `USER` and the target that it talks with.
        nonces: texts in the messages that are new for each call, such as a judge's markers.
        workspace_path: directory that an agent works in; None: the case has no workspace.
        sandbox: starts the programs of this call, confined to the workspace; None: they are started as they are.
        mcp_servers: the scripted tools of the case, for an agent.
        variant: the name of how the agent is equipped.
        max_turns, max_tool_calls: what an agent may do in its trial; one that can stop sooner than we see it does.
        gateway: how the agent reaches its model; None: by its own settings.
        on_activity: gets what the agent has done so far, whenever that changes; None: nobody asks.
        interruption: done when the run is interrupted: the agent is to be ended in good order, and its answer is a
            failure `interrupted` with the trace so far. None: nothing interrupts it.
        workspace_key: hash of what its workspace is made of; empty without a workspace.
        root: absolute path of the repository, which the paths of attached files count from in its key.
        schema: JSON Schema that the answer must obey, in the strict form that model APIs take: every object closed,
            every property required. Targets that cannot promise it pass it over.
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
        """Call once. Errors outside agentv are returned as a Failure, never raised."""

    async def close(self) -> None:
        """Let go of connections and processes."""


@runtime_checkable
class SessionTarget(Protocol):
    """A target that keeps a session from turn to turn of a trial."""

    async def end_session(self, request: TargetRequest) -> None:
        """The trial of this request asks nothing more: end its session, and the agent with it. Without one: nothing."""


@runtime_checkable
class Embedder(Protocol):
    """A target whose API also computes embeddings."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors of the texts, in order. Errors outside agentv are returned, never raised."""


class Connectable(Protocol):
    """The settings of a provider, which connect to the system that they describe."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that is ready for calls. Nothing is started before its first call."""


Handler = Callable[[str, Sequence[Any]], Awaitable[Any]]
"""Answers what a call of user code asks for: (name, arguments) → a plain value, or a LookupError."""

Role = Literal["tested", "grading", "world", "authoring"]
"""What code is to a run: no two roles share a process, so that a target cannot replace its grader."""


class CodeCall(PartlyShown, frozen=True):
    """One call of a user's function.

    Attributes:
        adapter: `package.module:name` of a function of agentv's that runs in the worker. It gets the user's function
            (None where `file` and `module` are) and the payload, and returns a value or an awaitable of one.
        function: the name in `file` or `module`, dotted for a method.
        code, what: of the failure if it raises, and whose code it is, to begin the message with.
        directory: where `sys.path` begins; empty: the file's own.
        env: the environment of the worker; None: this process's.
        handler: answers what the call asks this process for.
        processes: how many workers calls of the function are divided among, where they turn out to compute.
        continues: it continues what an earlier call began, so that no other worker can make it.
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
    """A value that a call returned, the milliseconds that it took, and the attempts before it whose worker died."""

    value: Any
    duration_ms: float = 0.0
    attempts: tuple[Attempt, ...] = ()


class Raised(Failure, frozen=True):
    """Why a call returned nothing. `cause`: text of the exception; `attempts`: those whose worker died."""

    cause: str = ""
    attempts: tuple[Attempt, ...] = ()


class Executor(Protocol):
    """Runs user functions, so that one that hangs or blocks does not delay others.

    A call begins when it is made, and not when it is first awaited: many that are made in one turn of the loop would
    otherwise all begin after the last of them was.
    """

    def call(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run the function on a new thread. If cancelled, the thread continues as a daemon."""

    def python(self, call: CodeCall) -> Awaitable[Returned | Raised]:
        """Call a function of the user's in its worker."""


class JavaScriptHost(Protocol):
    """The long-lived process that runs users' TypeScript and JavaScript."""

    async def call(self, source: str, payload: Mapping[str, Json], timeout_s: float) -> Json | Failure:
        """Call a function or an expression; its plain value, or a Failure."""

    async def grade(self, file: str, payload: Mapping[str, Json], timeout_s: float) -> JsonObject | Failure:
        """Have the default export of `file` grade the payload; its plain result, or a Failure."""


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def monotonic(self) -> float:
        """Seconds from some fixed point."""

    def utc(self) -> datetime:
        """The date and time now, in UTC."""


class Reader(Protocol):
    """File access of the loader. It records what it has read, for `run.json`."""

    def read(self, path: str) -> bytes:
        """The bytes of a file.

        Raises:
            OSError: it cannot be read.
        """


class Call(Struct, frozen=True):
    """A call whose answer is kept, or was.

    Attributes:
        key: the hash of what determines the answer.
        target: the name of the called target or judge.
        request: what is sent to it.
    """

    key: str
    target: str
    request: TargetRequest


class SpendingLog(Protocol):
    """Record of what model calls of agents cost, kept as soon as each has ended."""

    def spend(self, case_id: str, target: str, call: UsageStep, trial: str = "") -> None:
        """Keep what one call took; `trial` is the trial's key."""


class AnswerArchive(Protocol):
    """Store of answers for later runs."""

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """The answer to a call, or None."""

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store the answer to a call."""


class AnswerLookup(Protocol):
    """Lookup of stored answers for the calls of a trial: a store, or a connection to one on another machine."""

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store an answer before it is used."""

    def stored_answer(self, call: Call) -> TargetResponse | Awaitable[TargetResponse | None] | None:
        """The answer stored earlier, or None."""
