"""Unreachable clusters are reported at once, in agentv's own words."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from msgspec.structs import force_setattr

from agentv.app.planning.preparation import prepare
from agentv.app.settings import EvalSettings
from agentv.app.wiring import Answers, Connections
from agentv.engine.calls.recorded_call import call_key, no_answer
from agentv.engine.conversation import first_request
from agentv.engine.dependency_order import DependencyScheduler
from agentv.engine.run import Run, RunOptions
from agentv.engine.workers import IndependentTrials
from agentv.errors import UsageError
from agentv.extensions.ray.executor import RayExecutor, cluster, worker_config
from agentv.extensions.ray.messages import Received, Results, SharedObjects
from agentv.extensions.ray.worker_pool import WorkerPool
from agentv.model.run.events import TargetStopped, TrialFinished
from agentv.model.suite.suite import Retry
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from doubles.ray_in_process import RayInProcess
from doubles.stores import MemoryStore
from needs import needs


def refusal(address: str) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as found, cluster(address):
        raise AssertionError("it was joined")
    return str(found.value), found.value.hint


@needs("ray")
def test_an_address_that_is_none_is_told():
    message, _ = refusal("nonsense")
    assert message.startswith("no Ray cluster at nonsense: ")


@needs("ray")
def test_a_ray_client_is_refused_with_what_to_do():
    message, hint = refusal("ray://127.0.0.1:10001")
    assert message == "RAY_ADDRESS is ray://127.0.0.1:10001: agentv does not send trials through a Ray client"
    assert hint == "run agentv on a machine of the cluster, and set RAY_ADDRESS to auto"


pytestmark = needs("ray")

AGENT = """
from pathlib import Path

def answer(prompt, case_id):
    with Path(__file__).with_name("calls").open("a") as calls:
        calls.write(f"{case_id}\\n")
    return f"You asked: {prompt}"

def judge(prompt):
    with Path(__file__).with_name("calls").open("a") as calls:
        calls.write("judge\\n")
    return '{"score": 1, "reason": "fine"}'
"""


class Far:
    """A run of an eval file on workers in this process.

    Attributes:
        store: the run's store.
        happened: stored answers and finished cases, in order.
        failure: the failure of calls without a stored answer.
    """

    def __init__(self, directory: Path, text: str, **settings) -> None:
        (directory / "agent.py").write_text(AGENT)
        (directory / "a.eval.yaml").write_text(text)
        self._directory = directory
        self.prepared = prepare(
            EvalSettings(paths=(str(directory / "a.eval.yaml"),), process_env={"SHOP": "x"}, **settings)
        )
        self.store = MemoryStore()
        self.happened: list[str] = []
        self.stopped: list[str] = []
        self.environments: list[object] = []
        self.failure = None
        self.failure_of_judge = None
        self.interrupted_after: int | None = None
        self.interrupted_after_s: float | None = None

    @property
    def calls(self) -> list[str]:
        path = self._directory / "calls"
        return path.read_text().split() if path.exists() else []

    def run(self, ray: RayInProcess, workers: int = 2):
        """Return the results by case."""
        return asyncio.run(self._run(ray, workers))

    async def _run(self, ray: RayInProcess, workers: int):
        kept = self.store.keep

        def keep(call, answer) -> None:
            self.happened.append(f"answer of {call.target} to {call.request.case_id}")
            self.environments.append(call.request.env)
            kept(call, answer)

        self.store.keep = keep
        plan = self.prepared.plan
        shared = SharedObjects(workers)
        pool = WorkerPool(ray, worker_config(self.prepared, workers), shared)
        connections = Connections(answers=Answers(self.store, self.failure, self.failure_of_judge))
        options = RunOptions(4, executor=RayExecutor(pool, shared, connections))
        linked = any(suite.links for suite in plan.suites)
        trials = DependencyScheduler(plan, plan) if linked else IndependentTrials(plan)
        run = Run("run", trials, plan.counts()[1], run_context=connections, options=options)
        results = {}
        try:
            await pool.open(workers)
            if self.interrupted_after_s is not None:
                asyncio.get_running_loop().call_later(self.interrupted_after_s, run.stop)
            async for event in run.events():
                if isinstance(event, TrialFinished):
                    results[event.result.trial.case.id] = event.result
                    self.happened.append(f"row of {event.result.trial.case.id}")
                    if len(results) == self.interrupted_after:
                        run.stop()
                elif isinstance(event, TargetStopped):
                    self.stopped.append(event.name)
        finally:
            await pool.close()
            await connections.close()
        return results


SIX = "name: six\ntarget: python:agent.py:answer\ntests:\n" + "".join(
    f"  - {{id: c{number}, input: hello, assert: [contains: hello]}}\n" for number in range(6)
)
POLITE = """
name: judged
target: python:agent.py:answer
judge: {name: judge, provider: python, function: "agent.py:judge"}
tests:
  - {id: a, input: hello, assert: [{type: llm-rubric, value: It is polite.}]}
"""


def test_every_answer_is_kept_here_before_its_row(tmp_path):
    far = Far(tmp_path, POLITE)
    results = far.run(RayInProcess())
    assert results["a"].status == "passed"
    assert far.happened == ["answer of python:agent.py:answer to a", "answer of judge to a", "row of a"]
    assert far.calls == ["a", "judge"]
    assert far.environments == [{}, {}]  # they were sent to the worker and need not come back


def test_a_trial_whose_worker_dies_is_done_by_another_one_and_its_answer_is_not_paid_for_twice(tmp_path):
    far = Far(tmp_path, POLITE)
    judged = []

    def kills(number, message):
        judged.append(isinstance(message, Received) and message.call.target == "judge")
        return judged[-1] and sum(judged) == 1

    results = far.run(RayInProcess(kills), workers=1)
    assert results["a"].status == "passed"
    assert far.calls == ["a", "judge", "judge"]  # the verdict was lost with the worker, the answer was not
    assert far.happened == ["answer of python:agent.py:answer to a", "answer of judge to a", "row of a"]


def test_a_trial_that_no_worker_survives_is_errored_and_the_others_pass(tmp_path):
    far = Far(tmp_path, SIX)
    ray = RayInProcess(lambda _number, message: isinstance(message, Received) and message.call.request.case_id == "c3")
    results = far.run(ray)
    shown = {case: result.status for case, result in results.items()}
    assert shown == {**dict.fromkeys(("c0", "c1", "c2", "c4", "c5"), "passed"), "c3": "errored"}
    assert results["c3"].error.code == "worker-lost"
    assert results["c3"].error.message.startswith(
        "3 workers were lost while running it, the last one while running it alone"
    )
    assert far.calls.count("c3") == 3
    assert [line for line in far.happened if line.startswith("row")].count("row of c3") == 1


def test_without_a_worker_that_is_left_trials_are_errored_and_the_run_ends(tmp_path):
    far = Far(tmp_path, SIX)
    ray = RayInProcess(lambda _number, message: isinstance(message, Results), starts=2)
    results = far.run(ray)
    assert {result.status for result in results.values()} == {"errored"}
    assert {result.error.code for result in results.values()} == {"worker-lost"}
    assert "no worker left:" in results["c5"].error.message


def test_no_worker_at_all_is_told_before_the_run_begins(tmp_path):
    far = Far(tmp_path, SIX)
    with pytest.raises(UsageError, match="no worker of the Ray cluster can be used: actor 0 died"):
        far.run(RayInProcess(starts=0))
    assert far.calls == []


def test_where_nobody_is_to_be_asked_nobody_is(tmp_path):
    far = Far(tmp_path, SIX, regrade="last")
    far.failure = no_answer
    results = far.run(RayInProcess())
    assert {result.error.code for result in results.values()} == {"no-kept-answer"}
    assert far.calls == []


def test_a_judge_that_is_not_to_be_asked_is_not(tmp_path):
    far = Far(tmp_path, POLITE, replay="a.cassette.jsonl")
    (trial,) = far.prepared.plan
    far.store.recalled[call_key(trial.target, first_request(trial))] = TargetResponse("hello", earlier=True)
    far.failure = far.failure_of_judge = lambda call: Failure("not-recorded", f"nothing of {call.target}")
    result = far.run(RayInProcess())["a"]
    assert result.scores[0].grade.error == Failure("judge-not-recorded", "judge 'judge' failed: nothing of judge")
    assert far.calls == []


def test_a_target_that_one_worker_found_to_be_stopped_is_stopped_for_the_run(tmp_path):
    far = Far(tmp_path, SIX.replace("python:agent.py:answer", "{name: closed, provider: mock, error: no}"))
    (suite,) = far.prepared.suites
    stopped = CallFailure("http-status", "HTTP 401 Unauthorized", status=401, stops=True)
    force_setattr(suite.targets[0], "settings", Refusing(stopped))
    results = far.run(RayInProcess(), workers=1)
    codes = [result.error.code for result in results.values()]
    assert codes.count("http-status") >= 1
    assert codes.count("target-stopped") == 6 - codes.count("http-status") > 0
    assert far.stopped == ["closed"]


class Refusing:
    """Settings of a target whose key is refused."""

    def __init__(self, failure: CallFailure) -> None:
        self.failure = failure

    def connect(self, spec, executor):
        return self

    def answer(self, request):
        return self.failure

    async def close(self) -> None:
        return


def test_what_cannot_be_sent_is_told(tmp_path):
    far = Far(tmp_path, SIX)
    (suite,) = far.prepared.suites
    force_setattr(suite.targets[0], "settings", Refusing(one for one in "ab"))
    result = far.run(RayInProcess())["c0"]
    assert result.error.code == "worker-unfit"
    assert "cannot pickle 'generator' object" in result.error.message


def test_an_interrupted_run_ends_when_what_runs_has(tmp_path):
    more = "".join(f"  - {{id: d{number}, input: hello, assert: [contains: hello]}}\n" for number in range(60))
    far = Far(tmp_path, SIX + more)
    far.interrupted_after = 1
    results = far.run(RayInProcess())
    assert 1 <= len(results) < 40
    assert json.dumps(sorted(results)) == json.dumps(sorted(set(far.calls)))


def test_nobody_waits_for_another_attempt_of_an_interrupted_run(tmp_path):
    far = Far(tmp_path, SIX.replace("python:agent.py:answer", "{name: broken, provider: mock, error: no}"))
    (suite,) = far.prepared.suites
    force_setattr(suite.targets[0], "settings", Refusing(CallFailure("connection", "no reply", retryable=True)))
    force_setattr(suite.targets[0], "retry", Retry(1, initial_delay_ms=20_000, max_delay_ms=20_000))
    far.interrupted_after_s = 0.05
    began = time.monotonic()
    assert far.run(RayInProcess()) == {}
    assert time.monotonic() - began < 10
