"""The targets that a directory can name (SPEC section 12). Which one is asked is in `tests/cases/valid/target-*`."""

from pathlib import Path

import pytest

from agentv.authoring.targets.suite_targets import open_registry
from agentv.targets.catalogue import registry
from doubles.loading import outcome, parsed, reading_of, repository

FILE = """targets:
  - {name: agent, provider: mock, response: hi, judge: judy}
  - {name: broken, provider: mock}
  - {label: newer, provider: mock, response: hi, config: {grader_target: jim}}
defaults: {target: agent, judge: judy}
x-note: free
"""


def opened(folder: Path, text: str = FILE, name: str = "targets.yaml", **more):
    reading = reading_of(repository(folder, {f".agentv/{name}": text}), **more)
    return open_registry(str(folder), registry(), reading), reading


def told(reading) -> list[tuple[str, int | None]]:
    return [(one.code, one.span and one.span.line) for one in reading.report.diagnostics]


def test_text_that_came_out_of_a_placeholder_is_not_rendered_again(tmp_path):
    book, reading = opened(tmp_path, variables={"t": "mock:{{ x }}"}, renders=True)
    found = book.inline(parsed("'{{ t }}'"), reading)
    assert found.settings.response == "{{ x }}"
    assert told(reading) == []


def test_an_installed_agent_is_read_for_an_eval_file_in_a_folder(tmp_path, monkeypatch):
    files = {
        "bin/copilot": "#!/bin/sh\n",
        ".agentv/targets.yaml": "targets: [{name: agent, provider: copilot-cli}]\n",
        "evals/a.eval.yaml": "target: agent\ntests: [{id: a, input: hi, assert: [contains: hi]}]\n",
    }
    folder = repository(tmp_path, files)
    (folder / "bin" / "copilot").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    assert outcome(folder / "evals" / "a.eval.yaml")[1] == ()


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("# nothing\n", []),
        ("- {name: a, provider: echo}\n", []),
        ("x\n", [("bad-value", 1)]),
        ("targets: {a: b}\n", [("bad-value", 1)]),
        ("targets: [{name: '', provider: echo}]\n", [("missing-key", 1)]),
        ("defaults: x\n", [("bad-value", 1)]),
    ],
)
def test_what_is_wrong_with_the_file(tmp_path, text, codes):
    assert told(opened(tmp_path, text)[1]) == codes
