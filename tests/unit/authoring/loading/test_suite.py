"""One eval file as a Suite, and suites made in Python."""

import gc
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.authoring.header import name_of
from agentv.authoring.loading.load import LoadRequest, load, load_entry
from agentv.authoring.loading.suite import SuiteReader
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.errors import LoadError
from doubles.loading import repository, suite_of

CASE = "- {id: a, input: x, assert: [{contains: x}]}\n"


def test_a_suite_without_a_name_is_called_as_its_file():
    names = {"refund.eval.yaml": "refund", "refund.eval.yml": "refund", "shop/EVAL.yaml": "shop", "v1.2.yaml": "v1.2"}
    names |= {"cases.yaml": "cases", "cases.jsonl": "cases", "cases.eval.jsonl": "cases"}
    assert {path: name_of(f"/a/{path}") for path in names} == names


@pytest.mark.parametrize("tests", ["tests", "evalcases", "eval_cases", "cases"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["", "  "])
def test_cases_at_the_end_of_a_file_are_never_all_in_memory_as_nodes(tmp_path, tests, end, indent):
    text = f"target: echo{end}{tests}:   # the cases{end}" + "".join(
        f"{indent}- id: c{n}{end}{indent}  input: x{end}{indent}  assert: [{{contains: x}}]{end}" for n in range(200)
    )
    gc.freeze()  # existing objects are not scanned
    suite = suite_of(tmp_path, text)
    gc.collect()
    assert len(suite.cases) == 200
    assert [case.span.line for case in suite.cases][:2] == [3, 6]
    assert not [one for one in gc.get_objects() if type(one) is MapNode and "input" in one.items]


@pytest.mark.parametrize(
    "text",
    [
        f"tests:\n{CASE}target: echo\n",
        f"target: echo\n'tests':\n{CASE}",
        f"target: echo\ntests: &t\n{CASE}",
        "{target: echo, tests: [{id: a, input: x, assert: [{contains: x}]}]}",
        f"x-base: &x {{target: echo}}\n<<: *x\ntests:\n{CASE}",
        f"---\ntarget: echo\n# tests:\ntests:\n{CASE}...\n",
        f"name: |\n  tests:\n   - x\ntarget: echo\ntests:\n{CASE}",
    ],
)
def test_wherever_the_cases_stand_they_are_found(tmp_path, text):
    (case,) = suite_of(tmp_path, text).cases
    assert (case.id, suite_of(tmp_path, text).targets[0].name) == ("a", "echo")


def test_a_suite_remembers_all_that_was_read_for_it(tmp_path):
    suite = suite_of(
        tmp_path,
        "target: agent\nassert: [{include: t}]\ntests: [a.jsonl]\n",
        {
            "a.jsonl": '{"id": "a", "input": "x"}\n',
            ".agentv/templates/t.yaml": "assert: [{contains: x}]\n",
            ".agentv/targets.yaml": "targets: [{name: agent, provider: 'python:agent.py:f'}]\n",
            ".agentv/config.yaml": "threshold: 0.5\n",
            ".env": "A=1\n",
            "agent.py": "def f(prompt): return prompt\n",
        },
    )
    names = {str(Path(path).relative_to(tmp_path)) for path in suite.files}
    assert names == {
        "suite.eval.yaml",
        "a.jsonl",
        "agent.py",
        ".env",
        ".agentv/templates/t.yaml",
        ".agentv/targets.yaml",
        ".agentv/config.yaml",
    }
    assert all(len(digest) == 64 for digest in suite.files.values())


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    report = Report()
    assert SuiteReader(str(tmp_path / "loop.yaml"), LoadRequest(()), registries(), report).read() is None
    assert [one.code for one in report.diagnostics] == ["missing-file"]


def made(document, **request):
    try:
        loaded = load(LoadRequest((), documents=(document,), **request), registries())
    except LoadError as error:
        return None, [one.code for one in error.diagnostics]
    return loaded.suites[0], [one.code for one in loaded.diagnostics]


def test_a_mapping_is_read_like_a_file():
    document: dict[str, object] = {"target": "echo"}
    assert made(document) == (None, ["missing-key"])
    document["tests"] = [{"id": "a", "input": object(), "assert": [{"contains": "x"}]}]
    assert made(document)[1] == []
    document["tests"] = [document]
    assert made(document) == (None, ["too-deep"])


def test_one_assertion_as_a_file_in_a_directory_would_see_it(tmp_path):
    repository(tmp_path, {".agentv/assertions/min_words.py": "def assertion(ctx, *, minimum: int): return True\n"})
    entry, found = load_entry({"type": "min-words", "minimum": 3}, str(tmp_path), registries(), {})
    assert (entry.type, found) == ("min-words", ())
    entry, found = load_entry({"type": "min-wrds", "minimum": 3}, str(tmp_path), registries(), {})
    assert entry is None
    shown = [(one.code, one.span, one.hint) for one in found]
    assert shown == [("unknown-assertion", None, "did you mean 'min-words'?")]
    entry, found = load_entry({"type": "contains", "value": "{{ x }}"}, str(tmp_path), registries(), {})
    assert entry.assertion.value == "{{ x }}"
