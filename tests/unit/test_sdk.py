from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import agentv
from agentv import Case, ExitStatus, LoadError, Suite, UsageError, evaluate, evaluate_async

PUBLIC = [
    "AgentvError",
    "AssertionContext",
    "AssertionScore",
    "Case",
    "Check",
    "Diagnostic",
    "Evaluation",
    "ExitStatus",
    "Grade",
    "LoadError",
    "Message",
    "StoreError",
    "Suite",
    "Summary",
    "TargetResponse",
    "TokenUsage",
    "TrialResult",
    "UsageError",
    "__version__",
    "define_assertion",
    "define_script_grader",
    "evaluate",
    "evaluate_async",
]


@pytest.fixture(autouse=True)
def in_a_repository_of_its_own(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def one(identity: str = "a", **given) -> dict:
    return {"id": identity, "input": "hello", "assert": [{"contains": "hello"}], **given}


def test_the_public_names_are_these():
    assert sorted(agentv.__all__) == sorted(PUBLIC)
    assert all(getattr(agentv, name) is not None for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(agentv))
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        agentv.evaluat  # noqa: B018


def test_importing_agentv_costs_nothing():
    heavy = ["asyncio", "click", "jinja2", "msgspec", "yaml", "rich", "numpy", "scipy", "regex", "aiohttp", "pydantic"]
    code = f"import sys, agentv; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_types_are_shipped():
    from importlib.resources import files

    assert files("agentv").joinpath("py.typed").is_file()


def test_a_mapping_with_a_function_as_target():
    asked = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return prompt.upper()

    done = evaluate({"name": "greeting", "tests": [one(**{"assert": [{"contains": "HELLO"}]})]}, target=answer)
    assert asked == ["hello"]
    assert done.status is ExitStatus.PASSED
    assert done.passed
    assert done.summary.cases.passed == 1
    assert done.results[0].output == "HELLO"
    assert done.results[0].trial.target.name == "answer"
    assert (done.directory / "index.jsonl").is_file()


def test_a_suite_built_in_python_and_an_async_target():
    async def answer(prompt: str, vars: dict) -> str:  # noqa: A002  # the name that SPEC section 12 offers
        await asyncio.sleep(0)
        return f"{prompt} {vars['name']}"

    suite = Suite(
        name="greeting",
        assertions=[{"not-contains": "bye"}],
        tests=[
            Case(id="good", input="hi {{ name }}", vars={"name": "Ann"}, assertions=[{"equals": "hi Ann Ann"}]),
            Case(id="bad", input="hi", vars={"name": "Ann"}, assertions=[{"type": "contains", "value": "Bob"}]),
        ],
    )
    done = evaluate(suite, target=answer)
    assert done.status is ExitStatus.FAILED
    assert {one.trial.case.id: one.status for one in done.results} == {"good": "passed", "bad": "failed"}
    assert [score.grade.passed for score in done.results[0].scores] in ([True, True], [False, True])


def test_inside_a_running_loop():
    async def main():
        return await evaluate_async({"target": "echo", "tests": [one()]}, workers=2, out="here")

    done = asyncio.run(main())
    assert done.passed
    assert done.directory.name == "here"


def test_a_path_and_options(tmp_path):
    (tmp_path / "a.eval.yaml").write_text(
        "target: echo\ntests:\n"
        "  - {id: a, input: hello, assert: [contains: hello]}\n  - {id: b, input: hello, assert: [contains: bye]}\n"
    )
    assert evaluate(tmp_path / "a.eval.yaml").status is ExitStatus.FAILED
    assert evaluate("a.eval.yaml", filter="a").passed
    assert evaluate([tmp_path / "a.eval.yaml"], limit=1, repeat=3).summary.trials.passed == 3


def test_an_inline_target_and_a_judge_function():
    def judge(prompt: str) -> str:
        return '{"score": 1, "reason": "polite"}' if "hello" in prompt else '{"score": 0, "reason": "no"}'

    suite = {"tests": [{"id": "a", "input": "hello", "criteria": "is polite"}]}
    assert evaluate(suite, target={"provider": "mock", "response": "good day"}, judge=judge).passed


def test_what_is_wrong_is_raised_with_every_diagnostic():
    with pytest.raises(LoadError) as caught:
        evaluate({"target": "echo", "tests": [one(asert=[]), {"id": "b", "input": "x", "assert": [{"contians": "x"}]}]})
    assert {found.code for found in caught.value.diagnostics} == {"unknown-key", "unknown-assertion"}
    assert "did you mean 'contains'" in str(caught.value)


def test_a_filter_that_selects_nothing_is_raised():
    with pytest.raises(UsageError, match="selects no case"):
        evaluate({"target": "echo", "tests": [one()]}, filter="zzz")


def test_a_target_that_raises_is_errored_and_not_raised():
    def broken(prompt: str) -> str:
        raise ValueError("no")

    done = evaluate({"tests": [one()]}, target=broken)
    assert done.status is ExitStatus.ERRORED
    assert done.results[0].error.code == "target-raised"
    assert done.summary.pass_rate is None


def test_prompts_and_expanding_lists_of_a_suite_made_in_python(tmp_path):
    case = agentv.Case(id="a", vars={"t": ["x", "y"]}, expand=True, assertions=[{"contains": "{{ t }}"}])
    suite = agentv.Suite(name="s", tests=[case], prompts=["Say {{ t }}", {"id": "chat", "prompt": "Write {{ t }}"}])
    found = agentv.evaluate(suite, target="echo", out=str(tmp_path / "out"), sample=1, seed=3)
    assert found.passed
    (left,) = {result.trial.case.id for result in found.results}
    assert left in {"a[t=x]", "a[t=y]"}
    assert [result.trial.case.prompt_id for result in found.results] == ["prompt-1", "chat"]
