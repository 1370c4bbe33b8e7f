import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv import sdk
from agentv.app.authored.convert import format_of
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError
from agentv.extensions.datasets.converting import ConvertedDataset, DatasetRequest, from_dataset
from agentv.model.suite.suite import Suite


def lines(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def converted(source: Path, *checks: str, to: Any = "yaml") -> ConvertedDataset:
    return from_dataset(DatasetRequest(source, format_of(source), checks, to, None), {})


def loaded(path: Path) -> Suite:
    (suite,) = load(LoadRequest((str(path),), for_run=False), registries()).suites
    return suite


def problems(source: Path, *checks: str, form: str | None = None) -> list[tuple[int, str, str]]:
    with pytest.raises(LoadError) as caught:
        from_dataset(DatasetRequest(source, form or format_of(source), checks, "yaml", None), {})
    assert not list(source.parent.glob("*.eval.yaml"))
    return [(one.span.line if one.span else 0, one.code, one.message) for one in caught.value.diagnostics]


GOLDENS = [
    {
        "input": "What is {{ this }}?",
        "actual_output": None,
        "expected_output": "A cup",
        "retrieval_context": ["Cups hold tea.", "deepeval_source=wiki,deepeval_context=Tea is hot."],
        "context": ["Cups."],
        "name": "cups",
        "comments": "from the shop",
        "source_file": "shop.txt",
        "tools_called": None,
        "expected_tools": [{"name": "search"}],
        "additional_metadata": {"price": 1.50},
        "custom_column_key_values": {"team": "red"},
    },
    {"input": "Two\nlines", "expectedOutput": "=SUM(A1)", "name": "cups"},
]

AS_CASES = """\
name: goldens
assert:
- type: factuality
threshold: 1
tests:
- id: cups
  description: from the shop
  input: What is {{ '{{' }} this }}?
  expected_output: A cup
  vars:
    context:
    - Cups hold tea.
    - Tea is hot.
  assert:
  - type: contains
    value: A cup
  metadata:
    context:
    - Cups.
    source_file: shop.txt
    expected_tools:
    - name: search
    price: 1.5
    team: red
- id: cups-2
  input: |-
    Two
    lines
  expected_output: =SUM(A1)
  assert:
  - type: contains
    value: =SUM(A1)
"""


def test_goldens_of_deepeval(project: Path) -> None:
    source = project / "goldens.json"
    source.write_text(json.dumps(GOLDENS))
    done = converted(source, "contains", "factuality")
    assert done.paths == (project / "goldens.eval.yaml",)
    assert (done.count, done.checks, done.omitted) == (2, "contains and factuality", ())
    assert done.paths[0].read_text() == AS_CASES


def test_goldens_as_rows_of_csv(project: Path) -> None:
    source = project / "goldens.csv"
    source.write_text(
        "input,actual_output,expected_output,retrieval_context,additional_metadata\r\n"
        '"two\r\nlines",,"=HYPERLINK(""http://x"")",a|b,"{""k"": 1}"\r\n'
    )
    (case,) = loaded(converted(source, "equals").paths[0]).cases
    assert (case.id, case.input[0].content) == ("golden-1", "two\nlines")
    assert case.expected_output[0].content == '=HYPERLINK("http://x")'
    assert (case.vars, case.metadata) == ({"context": ["a", "b"]}, {"k": 1})


SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Capital of France?"}


@pytest.mark.parametrize(
    ("check", "answer", "passes"),
    [
        ("starts-with", "Paris, France", True),
        ("contains", "It is PARIS.", False),
        ("icontains", "It is PARIS.", True),
        ("ends-with", "It is Rome.", False),
    ],
)
def test_samples_of_openai_evals_by_check(check: str, answer: str, passes: bool, project: Path) -> None:
    done = converted(lines(project / "samples.jsonl", {"input": [SYSTEM, ASKED], "ideal": ["Paris", "paris"]}), check)
    target = {"name": "said", "provider": "mock", "response": answer}
    (case,) = loaded(done.paths[0]).cases
    assert [message.role for message in case.input] == ["system", "user"]
    evaluation = sdk.evaluate(str(done.paths[0]), target=target, out=str(project / "out"))
    assert (evaluation.results[0].status == "passed") is passes


CHOICES = {"id": 7, "input": "Which is a fruit?", "choices": ["rock", "apple"], "target": "B", "metadata": {"level": 1}}


def test_choices_of_inspect_are_shown_and_their_letter_is_checked(project: Path) -> None:
    parts = [{"type": "text", "text": "Which?"}, {"type": "image", "image": "https://example.org/a.png"}]
    with_picture = {**CHOICES, "id": "p", "input": [{"role": "user", "content": parts, "source": "input"}]}
    source = lines(project / "fruit.jsonl", CHOICES, with_picture)
    shown = problems(source, "equals")
    assert shown == [(1, "no-equivalent", "this sample has 'choices', which its input does not show")]
    done = converted(source, "choice")
    case, picture = loaded(done.paths[0]).cases
    assert case.id == "7"
    assert case.input[0].content == (
        "Which is a fruit?\n\nA) rock\nB) apple\n\nEnd your answer with a line 'ANSWER: LETTER', where LETTER is A or B."
    )
    assert [type(block).__name__ for block in picture.input[0].content] == ["TextBlock", "ImageBlock", "TextBlock"]
    for answer, passes in [("I think.\nANSWER: B", True), ("**Answer: b.**", True), ("ANSWER: A", False), ("B", False)]:
        target = {"name": "said", "provider": "mock", "response": answer}
        found = sdk.evaluate(str(done.paths[0]), target=target, out=str(project / f"out-{answer[:6]}"), filter="7")
        assert (found.results[0].status == "passed") is passes, answer


def test_what_needs_a_sandbox_is_refused_and_every_problem_is_told_once(project: Path) -> None:
    source = project / "samples.jsonl"
    source.write_text(
        '{"input": "a", "target": "b", "files": {"../../etc/x": "y"}}\n'
        '{"input": "a", "target": "b", "sandbox": "docker"}\n'
        '{"id": 1, "input": "a", "target": "b"}\n'
        '{"id": "1", "input": "a", "target": ""}\n'
        '{"id": 2, "input": "", "target": "b"}\n'
        '[1]\n{"input": "a\n{"input": "a", "target": "b", "setup": "rm -rf /"}\n'
    )
    assert problems(source, "equals", form="inspect") == [
        (1, "not-yet", "'files' of a sample needs a sandbox, which is not supported yet"),
        (2, "not-yet", "'sandbox' of a sample needs a sandbox, which is not supported yet"),
        (4, "checks-nothing", "this sample has no reference answer, so 'equals' would check nothing"),
        (4, "duplicate-id", "two samples have the id '1'; the first is at line 3"),
        (5, "missing-input", "this sample has no 'input'"),
        (6, "bad-case", "a sample must be an object, found a list"),
        (7, "bad-json", "not JSON: unterminated string starting"),
        (8, "not-yet", "'setup' of a sample needs a sandbox, which is not supported yet"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("nul.jsonl", b'{"input": "a\0", "ideal": "b"}\n', (1, "bad-json")),
        ("deep.jsonl", b'{"ideal": "b", "input": ' + b"[" * 1000 + b"]" * 1000 + b"}\n", (1, "too-deep")),
        ("wide.csv", b"input,ideal\na,b,c\n", (2, "bad-csv")),
        ("twice.csv", b"input,ideal,input\na,b,c\n", (1, "duplicate-key")),
        ("utf16.json", '[{"input": "a", "ideal": "b"}]'.encode("utf-16"), (1, "not-utf-8")),
        ("half.jsonl", b'{"input": "a\\ud800", "ideal": "b"}\n', (1, "not-unicode")),
        ("role.jsonl", b'{"input": [{"role": "boss", "content": "a"}], "ideal": "b"}\n', (1, "bad-message")),
        ("audio.jsonl", b'{"input": [{"role": "user", "content": [{"type": "audio"}]}], "ideal": "b"}', (1, "no-equivalent")),
        ("file.jsonl", b'{"input": [{"role": "user", "content": [{"type": "image", "image": "../a.png"}]}], "ideal": "b"}', (1, "no-equivalent")),
        ("empty.jsonl", b'{"input": "a", "ideal": []}\n', (1, "checks-nothing")),
    ],
)  # fmt: skip
def test_hostile_files_are_refused_at_their_place_and_nothing_is_written(name, data, found, project):
    source = project / name
    source.write_bytes(data)
    assert [one[:2] for one in problems(source, "equals", form="openai-evals")][:1] == [found]
    assert sorted(path.name for path in project.iterdir()) == [".git", name]


def test_different_findings_are_limited(project: Path) -> None:
    rows = ({"id": f"n{number // 2}", "input": "a", "target": "b"} for number in range(1000))
    with pytest.raises(LoadError) as caught:
        converted(lines(project / "samples.jsonl", *rows), "equals")
    assert len(caught.value.diagnostics) == 101
    assert "400 further findings are not listed" in [one.message for one in caught.value.diagnostics]


def test_nothing_is_overwritten_and_a_link_is_not_followed(project: Path) -> None:
    source = lines(project / "samples.jsonl", {"input": "a", "ideal": "b"})
    (project / "samples.eval.yaml").symlink_to(project / "elsewhere.yaml")
    with pytest.raises(UsageError, match=r"samples.eval.yaml would be overwritten"):
        converted(source, "equals")
    assert not (project / "elsewhere.yaml").exists()


SAID = st.text(
    st.one_of(st.characters(exclude_categories=("Cs",)), st.sampled_from("{}%$#'\"\n\r\t \0|:-\x85\u2028\ufeff")),
    max_size=12,
).filter(str.strip)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.tuples(SAID, SAID, SAID, SAID), st.lists(SAID, min_size=1, max_size=2), st.sampled_from(["yaml", "jsonl"]))
def test_whatever_a_text_contains_it_arrives_as_it_is(tmp_path_factory, said, retrieved, to):
    asked, reference, identity, note = said
    folder = tmp_path_factory.mktemp("texts")
    (folder / ".git").mkdir()
    golden = {"id": identity, "input": asked, "expected_output": reference, "retrieval_context": retrieved}
    (folder / "goldens.json").write_text(json.dumps([{**golden, "additional_metadata": {"note": note}}]))
    (case,) = loaded(converted(folder / "goldens.json", "contains", to=to).paths[-1]).cases
    assert (case.input[0].content, case.expected_output[0].content) == (asked, reference)
    assert case.assertions[0].assertion.value == reference  # type: ignore[union-attr]  # it is `contains`
    assert (case.id, case.vars, case.metadata) == (identity.strip(), {"context": retrieved}, {"note": note})


def test_messages_keep_roles_names_and_tool_calls(project: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "name": "example_user", "content": "2+2?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "c1"},
        {"role": "user", "content": "And 3+3?", "cache_control": {"type": "x"}},
    ]
    done = converted(lines(project / "samples.jsonl", {"input": messages, "ideal": "6"}), "equals")
    assert [one.message for one in done.omitted] == ["'cache_control' of a message is omitted"]
    (case,) = loaded(done.paths[0]).cases
    assert [message.role for message in case.input] == ["system", "assistant", "tool", "user"]
    assert case.input[0].name == "example_user"
    (made,) = case.input[1].tool_calls
    assert (made.name, made.arguments, made.id) == ("look", {"a": 1}, "c1")


def test_retrieved_texts_are_needed_where_they_are_judged(project: Path) -> None:
    source = project / "goldens.json"
    source.write_text(json.dumps([{"input": "a", "expected_output": "b", "source_file": "c"}]))
    message = "this sample has no 'retrieval_context', which 'context-recall' needs"
    assert problems(source, "context-recall") == [(1, "missing-value", message)]


TASKS = """
from tau_bench.types import Action, Task

TASKS_TEST = [
    Task(
        annotator="0", user_id="ann", instruction="You are Ann. Refund {it}.",
        actions=[Action(name="get_order", kwargs={"order_id": "7"}), Action(name="refund", kwargs={"order_id": "7"})],
        outputs=["1093.5"],
    ),
    Task(annotator="0", user_id="ben", instruction="Change nothing.", actions=[], outputs=[]),
]
"""
SHOP = (
    "STATE = {'paid': ['7']}\n\n\ndef get_order(order_id: str, state): ...\n\n\ndef refund(order_id: str, state): ...\n"
)


def test_tasks_of_tau_bench_are_graded_by_the_database_and_by_what_was_said(project: Path) -> None:
    (project / "tasks_test.py").write_text(TASKS)
    (project / "shop.py").write_text(SHOP)
    (project / "wiki.md").write_text("Be kind.")
    request = DatasetRequest(project / "tasks_test.py", "tau-bench", (), "yaml", None, project / "shop.py")
    suite = loaded(from_dataset(request, {}).paths[0])
    first, second = suite.cases
    assert suite.threshold == 1
    assert (first.id, first.user.goal, first.user.output) == ("task-1", "You are Ann. Refund {it}.", "answers")
    assert [one.role for one in first.input] == ["system"]
    shown = [(one.tool, one.args) for one in first.solution.calls]
    assert shown == [("shop.get_order", {"order_id": "7"}), ("shop.refund", {"order_id": "7"})]
    assert [entry.shown_type for entry in first.assertions] == ["tool-state", "icontains-all"]
    assert (first.assertions[1].assertion.value, first.expected_output[0].content) == (("1093.5",), "1093.5")
    assert first.metadata == {"user_id": "ann", "annotator": "0"}
    assert (second.solution.calls, [entry.shown_type for entry in second.assertions]) == ((), ["tool-state"])


def test_without_the_tools_only_calls_that_change_something_are_checked(project: Path) -> None:
    (project / "tasks_test.py").write_text(TASKS.partition("    Task(annotator")[0] + "]\n")
    request = DatasetRequest(project / "tasks_test.py", "tau-bench", (), "yaml", None)
    (path,) = from_dataset(request, {}).paths
    (case,) = loaded(path).cases
    assert [entry.shown_type for entry in case.assertions] == ["trajectory:tool-args-match", "icontains-all"]
    path.unlink()
    (project / "tasks_test.py").write_text(TASKS)
    (found,) = problems(project / "tasks_test.py", form="tau-bench")
    assert found == (10, "checks-nothing", "this sample says nothing of a right answer, so it would check nothing")


def test_tasks_of_tau2_bench_say_what_they_are_graded_by(project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    said = {"reason_for_call": "a refund", "task_instructions": "Be short.", "known_info": "Ann"}
    said["unknown_info"] = "the number"
    action = {"action_id": "1", "name": "refund", "arguments": {"order_id": "7"}}
    graded = {"actions": [action], "communicate_info": ["40"], "nl_assertions": ["It is kind."]}
    graded["reward_basis"] = ["DB", "NL_ASSERTION"]
    task = {"id": "a", "user_scenario": {"persona": "calm", "instructions": said}, "evaluation_criteria": graded}
    source = project / "tasks.json"
    source.write_text(json.dumps([task]))
    assert format_of(source) == "tau-bench"
    (case,) = loaded(
        from_dataset(DatasetRequest(source, "tau-bench", (), "yaml", None, project / "shop.py"), {}).paths[0]
    ).cases
    user = case.user
    assert (user.persona, user.goal) == ("calm", "a refund\nBe short.\nUnknown to you: the number")
    assert user.knows == {"about yourself": "Ann"}
    assert [entry.shown_type for entry in case.assertions] == ["tool-state", "llm-rubric"]


@pytest.mark.parametrize("to", ["yaml", "jsonl"])
def test_a_task_whose_calls_have_no_tool_is_named(project: Path, to: Any) -> None:
    (project / "shop.py").write_text(SHOP)
    calls, order = (("a", "refund"), ("b", "cancel")), {"arguments": {"order_id": "7"}}
    tasks = [
        {
            "id": name,
            "user_scenario": {"instructions": "x"},
            "evaluation_criteria": {"actions": [{**order, "name": tool}]},
        }
        for name, tool in calls
    ]
    (project / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(UsageError, match=r"not written: case 'b': the case has no tool 'shop\.cancel'"):
        from_dataset(DatasetRequest(project / "tasks.json", "tau-bench", (), to, None, project / "shop.py"), {})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"evaluation_criteria": {"reward_basis": ["ENV_ASSERTION"]}}, "no-equivalent: 'env_assertions' of a task are functions"),
        ({"evaluation_criteria": {"actions": [{"name": "x", "requestor": "user"}]}}, "no-equivalent: the user of this task calls tools"),
        ({"initial_state": {"initialization_data": {"agent_data": {"a": 1}}}}, "no-equivalent: this task begins with a database"),
        ({"initial_state": {"message_history": [{"role": "assistant", "tool_calls": [{}]}]}}, "no-equivalent: tools were called before"),
        ({"user_scenario": {}}, "bad-value: this task does not say what its user wants"),
        ({"evaluation_criteria": {"actions": "refund"}}, "bad-value: 'actions' of a task must be a list"),
        ({"evaluation_criteria": {"actions": [{"arguments": {}}]}}, "bad-value: an action of a task must be a mapping with 'name'"),
        ({"evaluation_criteria": {"actions": [{"name": "x", "arguments": "y"}]}}, "bad-value: the arguments of the action 'x'"),
        ({"evaluation_criteria": {"actions": [{"name": "x", "compare_args": 5}]}}, "bad-value: 'compare_args' of the action 'x' must be a list"),
        ({"initial_state": {"message_history": 5}}, "bad-value: 'message_history' of a task must be a list"),
        ({"evaluation_criteria": {"reward_basis": ["VIBES"]}}, "bad-value: 'reward_basis' of a task must be of DB"),
    ],
)  # fmt: skip
def test_what_a_task_has_that_a_case_has_not_is_refused(changed: Any, message: str, project: Path) -> None:
    task = {"id": "a", "user_scenario": {"instructions": "x"}, "evaluation_criteria": {}, **changed}
    source = project / "tasks.json"
    source.write_text(json.dumps([task]))
    ((_, code, said),) = problems(source)
    assert f"{code}: {said}".startswith(message)
