"""Unusable workers, and the messages about them."""

import asyncio

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.app.planning.preparation import prepare
from agentv.app.settings import EvalSettings
from agentv.errors import UsageError
from agentv.extensions.ray import worker_pool as crews
from agentv.extensions.ray.executor import pool_of, worker_config
from agentv.extensions.ray.messages import SharedObjects, WorkerConfig, needed_files
from agentv.extensions.ray.worker import is_machine_variable
from agentv.extensions.ray.worker_pool import WorkerPool
from doubles.ray_in_process import RayInProcess
from needs import needs

pytestmark = needs("ray")

SUITE = """
target: python:agent.py:answer
run: {workers: 5}
assert: [{type: nice}]
tests:
  - {id: a, input: hello, assert: [{type: python, value: "file://grade.py:grade"}]}
"""


def opened(number: int = 2, **needs: dict[str, str]) -> WorkerPool:
    async def main() -> WorkerPool:
        pool = WorkerPool(RayInProcess(), WorkerConfig(at_once=1), SharedObjects(number), **needs)
        try:
            await pool.open(number)
        finally:
            await pool.close()
        return pool

    return asyncio.run(main())


def refusal(number: int = 2, **needs: dict[str, str]) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as found:
        opened(number, **needs)
    return str(found.value), found.value.hint


def prepared(directory, **settings):
    (directory / ".agentv" / "assertions").mkdir(parents=True)
    (directory / ".agentv" / "assertions" / "nice.py").write_text("def nice(ctx): return True\n")
    (directory / "agent.py").write_text("import beside\ndef answer(prompt): return prompt\n")
    (directory / "beside.py").write_text("")
    (directory / "grade.py").write_text("def grade(output, context): return True\n")
    (directory / "a.eval.yaml").write_text(SUITE)
    return prepare(EvalSettings(paths=(str(directory / "a.eval.yaml"),), process_env={}, **settings))


def test_the_code_of_targets_and_assertions_is_needed_and_the_eval_file_is_not(tmp_path):
    names = {path.removeprefix(f"{tmp_path}/") for path in needed_files(prepared(tmp_path).plan)}
    assert names == {"agent.py", "beside.py", "grade.py", ".agentv/assertions/nice.py"}


def test_a_worker_without_a_file_is_told_with_what_to_do():
    message, hint = refusal(files={"/nowhere/grade.py": "0" * 64, "/nowhere/agent.py": "0" * 64})
    assert message.startswith("the worker on ")
    assert message.endswith(", as 1 more of 2, does not have /nowhere/grade.py and 1 more, which the trials need")
    assert hint == "all machines need the same files at the same paths, such as a shared checkout"


def test_a_worker_with_another_text_of_a_file_is_not_used(tmp_path):
    (tmp_path / "grade.py").write_text("an older one")
    message, _ = refusal(1, files={str(tmp_path / "grade.py"): "0" * 64})
    assert message.endswith(f" has a different version of {tmp_path}/grade.py from this machine")


def test_a_worker_with_another_agentv_is_not_used(monkeypatch):
    monkeypatch.setattr(crews, "__version__", "0.0.1")
    message, hint = refusal()
    assert "has agentv " in message
    assert message.endswith(", and this is 0.0.1")
    assert hint == "install the same versions on each machine"


def test_functions_see_the_environment_of_the_run_and_the_machine_keeps_its_own(monkeypatch):
    monkeypatch.setenv("PATH", "/of/the/machine")
    monkeypatch.delenv("SHOP_KEY", raising=False)
    monkeypatch.setenv("SHOP_PLACE", "there")
    opened(environment={"PATH": "/of/home", "SHOP_KEY": "x" * 200_000, "SHOP_PLACE": "here"})
    import os

    assert (os.environ["PATH"], os.environ["SHOP_PLACE"]) == ("/of/the/machine", "here")
    assert len(os.environ.pop("SHOP_KEY")) == 200_000


@pytest.mark.parametrize(("name", "own"), [("HOME", True), ("RAY_ADDRESS", True), ("OPENAI_API_KEY", False)])
def test_what_belongs_to_a_machine(name, own):
    assert is_machine_variable(name) is own


def test_all_workers_together_call_no_endpoint_more_often_at_once_than_one_process(tmp_path):
    run = prepared(tmp_path)
    assert [worker_config(run, number).at_once for number in (1, 2, 5)] == [5, 3, 1]


@pytest.mark.parametrize(
    ("settings", "looks", "no_target", "no_judge"),
    [
        ({}, False, False, False),
        ({"resume": "last"}, True, False, False),
        ({"rerun": "failed"}, True, False, False),
        ({"cache": True}, True, False, False),
        ({"regrade": "last"}, True, True, False),
        ({"replay": "a.jsonl"}, True, True, True),
        ({"replay": "a.jsonl", "replay_mode": "new"}, True, False, False),
        ({"record": "a.jsonl"}, False, False, False),
    ],
)
def test_workers_ask_at_home_where_answers_may_be(tmp_path, settings, looks, no_target, no_judge):
    run = prepared(tmp_path)
    config = worker_config(structs.replace(run, settings=replace(run.settings, **settings)), 1)
    assert (config.looks, config.no_target, config.no_judge) == (looks, no_target, no_judge)


def refused(settings: EvalSettings) -> UsageError:
    async def main() -> None:
        async with pool_of(prepare(settings)):
            raise AssertionError("a pool was made")

    with pytest.raises(UsageError) as found:
        asyncio.run(main())
    return found.value


DOCUMENT = {"tests": [{"id": "a", "input": "hi", "assert": [{"contains": "hi"}]}]}


def test_a_budget_is_refused_since_workers_do_not_share_one():
    error = refused(EvalSettings(documents=(DOCUMENT,), targets=("echo",), executor="ray", budget_usd=1.0))
    assert str(error) == "a budget does not work with --executor ray: workers do not know what the others spend"


def test_without_ray_it_says_how_to_get_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    error = refused(EvalSettings(documents=(DOCUMENT,), targets=("echo",), executor="ray"))
    assert str(error) == "--executor ray requires the package ray, which is not installed"
    assert error.hint == "pip install 'agentv[ray]'"
