"""A trial with a workspace: opened, called, finished, graded and closed in every case."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.engine.calls.recorded_call import call_key, no_answer
from agentv.engine.executor import LocalExecutor
from agentv.engine.trial import request_of
from agentv.extensions.agents.trial.work import AgentTrial
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.suite.suite import Case, RunSettings, Suite, TargetSpec
from agentv.model.suite.tools import GatewayAccess
from agentv.model.suite.workspace import NO_WORK_LIMITS, Hooks, Variant, WorkLimits, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, WorkspaceChanges
from agentv.ports import Call
from doubles.given_workspaces import CHANGED, FakeWorkspace, FakeWorkspaces
from doubles.run_contexts import FakeRunContext
from doubles.stores import MemoryStore

SPEC = WorkspaceSpec(sha256="of-the-spec")


@dataclass(frozen=True)
class Confined:
    confined: bool = True
    on_denied: str = "grade"


@dataclass
class Seen:
    """An assertion that passes and records what it sees."""

    notes: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)
    grade_of: Grade = field(default_factory=lambda: Grade.of(True, "seen", None))

    def label(self):
        return ""

    def grade(self, context):
        self.notes.append("grade")
        self.contexts.append(context)
        return self.grade_of


@dataclass
class Agent:
    """A target with given answers that records its requests."""

    notes: list[str]
    answers: list[Any]
    asked: list[Any] = field(default_factory=list)

    async def answer(self, request):
        self.notes.append("ask")
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def end_session(self, request):
        self.notes.append(f"end session of {request.case_id}")

    async def close(self):
        pass


@dataclass
class Given:
    answers: list[Any] = field(default_factory=lambda: [TargetResponse("done")])
    workspace: Any = None
    spec: WorkspaceSpec = SPEC
    store: MemoryStore = field(default_factory=MemoryStore)
    unanswered: Any = None
    limits: WorkLimits = NO_WORK_LIMITS
    variant: Variant | None = None
    turns: int = 0
    run: RunSettings = field(default_factory=RunSettings)
    notes: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self):
        self.seen.notes = self.notes
        self.opened = FakeWorkspace(self.notes) if self.workspace is None else self.workspace
        self.workspaces = FakeWorkspaces(self.opened, self.notes)
        self.agent = Agent(self.notes, self.answers)
        entry = AssertionEntry("seen", self.seen, DEFAULTS)
        turns = tuple(Turn((Message("user", f"turn {number}"),), assertions=(entry,)) for number in range(self.turns))
        case = Case(
            "a",
            (Message("user", "fix it"),),
            (entry,),
            metadata={"commit": "abc"},
            workspace=self.spec,
            limits=self.limits,
            turns=turns,
        )
        suite = Suite("s", (case,), own_env={"A": "1"}, env={"A": "1", "HOST": "x"}, run=self.run)
        target = TargetSpec("agent", "cli", Confined(), env={"T": "2"})
        self.trial = Trial(suite, case, target, 0.8, 60.0, key="key-1", variant=self.variant)
        self.context = FakeRunContext(
            lambda _: self.agent, store=self.store, unanswered=self.unanswered, workspaces=self.workspaces
        )

    def result(self):
        return asyncio.run(LocalExecutor(self.context).run(self.trial))


def test_a_trial_goes_its_way_in_order():
    given = Given(variant=Variant("bare", env={"V": "3"}))
    result = given.result()
    assert given.notes == [
        "open bare {'A': '1'}",
        "ask",
        "end session of a",
        "finish",
        "grade",
        "end session of a",
        "close, keep False",
    ]
    asked, seen = given.agent.asked[0], given.seen.contexts[0]
    assert (asked.workspace_path, asked.sandbox, asked.variant) == ("/workspaces/1", given.opened.sandbox, "bare")
    assert asked.env == {"A": "1", "V": "3", "T": "2"}, "only what is set for the agent"
    assert (seen.workspace, seen.workspace_path, seen.changes) == (given.opened, "/workspaces/1", CHANGED)
    assert (result.status, result.work.changes, result.work.sandbox) == ("passed", CHANGED, "none")


@pytest.mark.parametrize(
    ("keep", "passes", "kept"),
    [("failed", True, False), ("failed", False, True), ("none", False, False), ("all", True, True)],
)
def test_the_status_decides_whether_a_workspace_is_kept(keep, passes, kept):
    given = Given(spec=structs.replace(SPEC, keep=keep))
    given.seen.grade_of = Grade.of(passes, "seen", None)
    given.result()
    assert given.notes[-1] == f"close, keep {kept}"


@pytest.mark.parametrize(
    ("workspace", "code", "steps"),
    [
        (Failure("workspace-failed", "no"), "workspace-failed", []),
        (FakeWorkspace([], changes=Failure("workspace-failed", "no")), "workspace-failed", ["ask"]),
        (FakeWorkspace([], closed=Failure("hook-failed", "no")), "hook-failed", ["ask", "grade"]),
    ],
)
def test_a_failure_of_the_workspace_is_the_error_of_the_trial(workspace, code, steps):
    given = Given(workspace=workspace)
    result = given.result()
    assert (result.status, result.score, result.error.code) == ("errored", None, code)
    assert [note for note in given.notes if note in ("ask", "grade")] == steps


def with_a_kept_answer(**more):
    given = Given(**more)
    request = request_of(given.trial, given.trial.case.input)
    given.store.keep(Call(call_key(given.trial.target, request), "agent", request), TargetResponse("of before"))
    given.store.load_answers()
    return given


def test_an_answer_of_an_earlier_process_is_not_taken_for_a_new_workspace():
    given = with_a_kept_answer()
    assert (given.result().output, given.notes[1]) == ("done", "ask")


def test_a_recorded_answer_cannot_show_that_protected_files_are_unchanged():
    result = with_a_kept_answer(unanswered=no_answer, spec=structs.replace(SPEC, protected=("tests/**",))).result()
    assert (result.status, result.score, result.error.code) == ("errored", None, "no-workspace")


CALLS = (ToolCall("read", {}), ToolCall("edit", {}))
TWO_CALLS = TargetResponse("done", (Message("assistant", "", tool_calls=CALLS), Message("assistant", "done")))


@pytest.mark.parametrize("of_case", [True, False])
@pytest.mark.parametrize("limit", ["max_tool_calls", "max_turns"])
def test_a_passed_limit_is_an_error(limit, of_case):
    more = {"limits": WorkLimits(**{limit: 1})} if of_case else {"run": RunSettings(**{limit: 1})}
    given = Given([TWO_CALLS], **more)
    result = given.result()
    assert (result.status, result.error.code, result.work.changes) == ("errored", "agent-limit", CHANGED)
    assert getattr(given.agent.asked[0], limit) == 1


def test_an_agent_that_ran_out_of_time_is_an_error_unless_its_work_is_graded():
    late = Failure("timeout", "no answer after 60 s", retryable=True)
    assert Given([late]).result().error.code == "agent-limit"
    given = Given([late], limits=WorkLimits(on_limit="grade"))
    assert (given.result().status, given.seen.contexts[0].output) == ("passed", None)


def test_one_workspace_stays_through_the_turns_and_only_the_case_sees_it():
    ends = {"one": "cut off", "two": ""}
    steps = [Trace((MessageStep("assistant", word),), agent_version="2", partial=end) for word, end in ends.items()]
    given = Given([TargetResponse(word, trace=trace) for word, trace in zip("ab", steps, strict=True)], turns=2)
    result = given.result()
    shown = [note for note in given.notes if note in ("ask", "grade", "finish")]
    assert shown == [*("ask", "grade", "ask", "grade"), *("finish", "grade")]
    assert [context.workspace for context in given.seen.contexts] == [None, None, given.opened]
    assert [step.text for step in result.work.trace.steps] == ["one", "two"]
    assert (result.work.agent_version, result.work.trace.partial) == ("2", "cut off")


def test_hooks_of_agentv_get_the_facts_of_the_trial():
    hook = WorkspaceCommand(argv=("hook",), stdin='{"hook_name": "before_each", "test_id": ""}')
    given = Given(spec=structs.replace(SPEC, hooks=Hooks(before_each=(hook,))))
    given.result()
    (told,) = given.workspaces.specs[0].hooks.before_each
    assert json.loads(told.stdin) == {
        "hook_name": "before_each",
        "test_id": "a",
        "case_input": "fix it",
        "case_metadata": {"commit": "abc"},
    }


def test_compared_trials_keep_their_workspaces_until_they_are_graded():
    both = [Given(variant=Variant(name, sha256=name)) for name in ("bare", "with-skill")]

    async def compared():
        executors = [LocalExecutor(one.context) for one in both]
        answered = [await executor.answer(one.trial) for executor, one in zip(executors, both, strict=True)]
        assert all(one.notes[-1] == "finish" for one in both)
        return await executors[0].compare(answered)

    for one in both:
        one.trial = structs.replace(one.trial, key=f"key-{one.variant.name}")
    results = asyncio.run(compared())
    assert [(result.status, result.work.changes) for result in results] == [("passed", CHANGED)] * 2
    assert [one.notes[-1] for one in both] == ["close, keep False"] * 2


@dataclass
class Servers:
    """Scripted tools that listen on a socket."""

    servers: tuple[Any, ...] = ()
    forwards: dict[int, str] = field(default_factory=lambda: {61001: "/home/tools"})


@pytest.mark.parametrize(
    ("network", "socket", "expected"),
    [
        ("loopback", "/home/gateway", {61001: "/home/tools", 4100: "/home/gateway"}),
        ("loopback", "", {61001: "/home/tools"}),
        ("host", "/home/gateway", None),
    ],
)
def test_a_sandbox_with_a_network_of_its_own_leads_to_the_gateway_and_the_tools(network, socket, expected):
    given = Given()
    sandbox = given.opened.sandbox
    sandbox.network = network
    work = AgentTrial(given.trial, given.context, given.opened, Servers())
    access = GatewayAccess("http://127.0.0.1:4100", "token", socket)
    work.request(replace(request_of(given.trial, given.trial.case.input), gateway=access))
    assert getattr(sandbox, "forwards", None) == expected


DENIED = Trace((PermissionStep("edit", allowed=False, reason="rule 1"), MessageStep("assistant", "done")), "acp")
BY_SERVER = Trace((*DENIED.steps, ToolCallStep("shop.refund", {}, status="completed")), "acp")


@pytest.mark.parametrize(
    ("trace", "changes", "on_denied", "code"),
    [
        (DENIED, WorkspaceChanges(), "error", "permission-denied"),
        (DENIED, WorkspaceChanges(), "grade", None),
        (DENIED, CHANGED, "error", None),
        (BY_SERVER, WorkspaceChanges(), "error", None),
        (Trace((MessageStep("assistant", "done"),), "acp"), WorkspaceChanges(), "error", None),
    ],
)
def test_a_success_after_a_denial_needs_a_change_whatever_the_times_of_files(trace, changes, on_denied, code):
    given = Given([TargetResponse("done", trace=trace)])
    given.opened.changes = changes
    given.trial = structs.replace(
        given.trial, target=structs.replace(given.trial.target, settings=Confined(on_denied=on_denied))
    )
    error = given.result().error
    assert (error.code if error is not None else None) == code
