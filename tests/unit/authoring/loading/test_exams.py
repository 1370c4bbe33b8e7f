"""Exams: which files are exams, the record of an attempt, and the models that they call (SPEC section 11)."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, check_file
from agentv.model.suite.exam import DESCRIPTION, Exam
from agentv.model.suite.suite import Suite
from doubles.loading import outcome, repository

PROMPT = {"prompts/p/prompt.md": "{{ file }}\n", "prompts/p/meta.yaml": "description: Cuts.\nstatus: draft\n"}
EXAM = "defaults: {model: echo}\ncases:\n  - {name: a, inputs: {file: x}, assert: [contains: x]}\n"


def exam_in(folder: Path, text: str = EXAM, files: Mapping[str, str | bytes] = PROMPT, **request: object) -> Suite:
    path = repository(folder, {"prompts/p/eval.yml": text, **files}) / "prompts/p/eval.yml"
    suites, found = outcome(path, **request)
    assert suites, [str(one) for one in found]
    return suites[0]


def exam_of_suite(folder: Path, text: str = EXAM, files: Mapping[str, str | bytes] = PROMPT, **request: object) -> Exam:
    exam = exam_in(folder, text, files, **request).exam
    assert exam is not None
    return exam


def test_what_sat_is_all_that_the_exam_rests_on_and_no_secret_nor_file_elsewhere(tmp_path: Path) -> None:
    files = {
        **PROMPT,
        "prompts/p/prompt.md": b"\xef\xbb\xbf{{ file }}\r\n",
        "prompts/p/happy/inputs.yml": "file: x\n",
        "prompts/p/unused/inputs.yml": "file: y\n",
        "prompts/p/judge.md": "{{ output }} {{ rubrics }}",
        "prompts/p/check.py": "def check(output, context):\n    return True\n",
        "prompts/q/meta.yaml": "description: Another.\n",
        "prompts/q/prompt.md": "x",
        "shared/schema.json": "{}",
        ".agentv/templates/safe.yaml": "assert:\n  - contains: x\n",
        ".agentv/assertions/calm.py": "from agentv import assertion\nimport mood\n\n\n@assertion\n"
        "def calm(output: str) -> bool:\n    return mood.calm(output)\n",
        ".agentv/assertions/mood.py": "def calm(output):\n    return True\n",
        "prompts/p/checks/grade.py": "import rules\n",
        "prompts/p/checks/rules.py": "import json\nfrom inner import words\n",
        "prompts/p/checks/inner/words.py": "",
        ".agentv/config.yaml": "run: {workers: 2}\n",
        ".agentv/targets.yaml": "targets:\n  - {name: old, provider: replay, path: ../old.jsonl}\n",
        "old.jsonl": "",
        ".env": "A=b\n",
    }
    text = """defaults: {model: echo, judge: "mock:YES"}
triggering: {should_trigger: [cut]}
cases:
  - name: a
    inputs_from: happy
    assert:
      - include: safe
      - json_schema: ../../shared/schema.json
      - type: calm
      - {type: script, command: [bash, -c, 'cd checks && python3 grade.py']}
      - {type: python, value: "file://check.py:check"}
      - {type: llm-rubric, value: good, prompt: judge.md}
"""
    text += f"      - {{type: script, command: [{sys.executable}, grade.py]}}\n"
    files["prompts/p/grade.py"] = "print(1)\n"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.env").write_text("KEY=hush\n")
    exam = exam_of_suite(tmp_path / "here", text, files, env_file=str(tmp_path / "elsewhere/secret.env"))
    assert set(exam.texts) == {
        "prompt.md",
        "eval.yml",
        "happy/inputs.yml",
        "judge.md",
        "check.py",
        "../../shared/schema.json",
        "../../.agentv/templates/safe.yaml",
        "../../.agentv/assertions/calm.py",
        "../../.agentv/assertions/mood.py",
        "grade.py",
        "checks/grade.py",
        "checks/rules.py",
        "checks/inner/words.py",
        DESCRIPTION,
        "targets.yaml#echo",
        "targets.yaml#mock:YES",
    }
    assert exam.texts["prompt.md"] == b"{{ file }}\n"
    assert exam.texts[DESCRIPTION] == b"Cuts."
    assert (exam.prompt, exam.directory) == ("p", str(tmp_path / "here/prompts/p"))
    assert exam.queries == {"trigger: cut": True}


def test_what_sat_holds_the_settings_of_its_model_and_nothing_of_targets_that_it_does_not_use(tmp_path: Path) -> None:
    targets = """targets:
  - {name: m, provider: python, function: "m.py:f", env: {API_KEY: "{{ env.KEY }}"}}
  - {name: other, provider: python, function: "other.py:f"}
  - {name: broken, provider: python, function: "broken.py:nothing"}
"""
    code = "def f(prompt):\n    return prompt\n"
    files = {**PROMPT, ".agentv/targets.yaml": targets, "m.py": code, "other.py": code, "broken.py": code}
    text = EXAM.replace("echo", "m")
    own = "targets.yaml#m"

    def sat(folder: str, *, for_run: bool, env: Mapping[str, str], **changed: str) -> Mapping[str, bytes]:
        made = {**files, **{name.replace("_py", ".py"): text for name, text in changed.items()}}
        return exam_of_suite(tmp_path / folder, text, made, for_run=for_run, process_env=env).texts

    run = sat("a", for_run=True, env={"KEY": "hush-hush-hush"})
    assert run == sat("b", for_run=False, env={"KEY": "another-secret"}, other_py="X = 1\n" + code)
    assert set(run) == {"prompt.md", "eval.yml", DESCRIPTION, own}
    assert b"hush" not in run[own]
    edited = sat("c", for_run=False, env={"KEY": "hush-hush-hush"}, m_py="X = 1\n" + code)
    assert {name for name in run if run[name] != edited[name]} == {own}


def test_line_ends_the_status_and_the_place_of_the_prompt_are_not_part_of_what_sat(tmp_path: Path) -> None:
    first = exam_of_suite(tmp_path / "a")
    windows = {name: text.replace("\n", "\r\n").encode() for name, text in PROMPT.items()}
    windows["prompts/p/meta.yaml"] = b"status: ready\r\nowner: me\r\ndescription: Cuts.\r\n"
    assert exam_of_suite(tmp_path / "b", EXAM.replace("\n", "\r\n"), windows).texts == first.texts


MODELS = {
    **PROMPT,
    ".agentv/targets.yaml": "targets:\n  - {name: one, provider: mock, response: x}\n"
    "  - {name: two, provider: mock, response: x}\n  - {name: broken, provider: mock}\n",
}
NAMED = EXAM.replace("echo", "one")
JUDGED = NAMED.replace("}\ncases", ', judge: "mock:SCORE=5 REASON=a"}\ncases').replace(
    "assert:", "rubric: good, assert:"
)


@pytest.mark.parametrize(
    ("text", "request_", "other"),
    [
        (NAMED, {}, False),
        (NAMED, {"targets": ("one",)}, False),
        (NAMED, {"targets": ("two",)}, True),
        (NAMED, {"targets": ("one", "two")}, True),
        (NAMED, {"targets": ("echo",)}, True),
        (NAMED.replace("one", "broken"), {"targets": ("echo",)}, True),
        (NAMED.replace("name: a", "name: a, model: two"), {"targets": ("one",)}, True),
        (NAMED.replace("name: a", "name: a, model: two"), {"targets": ("two",)}, False),
        (EXAM.replace("defaults: {model: echo}", "x-none: 1"), {"targets": ("two",)}, False),
        (NAMED, {"variables": {"file": "x"}}, True),
        (NAMED, {"judge": "echo"}, False),
        (JUDGED, {"judge": "mock:SCORE=5 REASON=a"}, False),
        (JUDGED, {"judge": "echo"}, True),
    ],
)
def test_another_model_than_the_exam_names(tmp_path: Path, text: str, request_: dict[str, object], other: bool) -> None:
    assert exam_of_suite(tmp_path, text, MODELS, **request_).other_model is other


def test_an_id_of_a_model_names_a_target_in_exams_alone(tmp_path: Path) -> None:
    text = "target: claude-opus-4-7\ntests: [{id: a, input: x, assert: [contains: x]}]\n"
    (found,) = outcome(repository(tmp_path, {"a.eval.yaml": text}) / "a.eval.yaml")[1]
    assert found.code == "unknown-target"


def test_the_files_of_a_prompt_are_checked_with_its_exam(tmp_path: Path) -> None:
    files = {
        **PROMPT,
        "prompts/p/eval.yml": EXAM + "  - {name: b, inputs_from: in, assert: [contains: x]}\n",
        "prompts/p/in/inputs.yml": "file:\n",
        "prompts/p/meta.yaml": "status: redy\n",
        "prompts/q/prompt.md": "x",
        "prompts/q/meta.yaml": "status: redy\n",
    }
    repository(tmp_path, files)
    for one, code in (("p/in/inputs.yml", "missing-value"), ("p/meta.yaml", "bad-value"), ("q/meta.yaml", "bad-value")):
        path = str(tmp_path / "prompts" / one)
        found = check_file(path, LoadRequest((), for_run=False), registries()).diagnostics
        assert [(one.code, one.span and one.span.file) for one in found] == [(code, path)]
