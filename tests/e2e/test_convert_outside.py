"""`convert` reads no file outside the repository unless it is allowed to, and quotes none."""

from __future__ import annotations

from pathlib import Path

import pytest

HEAD = "prompts: ['x {{a}}']\nproviders: [echo]\n"
CHECKED = "tests: [{vars: {a: b}, assert: [{type: contains, value: x}]}]\n"


@pytest.fixture
def outside(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("outside")
    (directory / "private.txt").write_text("PRIVATE {{ a }}\n")
    (directory / "wrong.txt").write_text("PRIVATE {{ [].map(x) }}\n")
    (directory / "private.yaml").write_text("a: PRIVATE\n")
    (directory / "broken.yaml").write_text("a: [PRIVATE\n")
    return directory


@pytest.mark.parametrize(
    "written",
    [
        "prompts: ['file://{outside}/private.txt']\nproviders: [echo]\n" + CHECKED,
        "prompts: ['file://link.txt']\nproviders: [echo]\n" + CHECKED,
        "prompts: [link.txt]\nproviders: [echo]\n" + CHECKED,
        "prompts: ['*.txt']\nproviders: [echo]\n" + CHECKED,
        "prompts: ['../*.txt']\nproviders: [echo]\n" + CHECKED,
        "prompts: ['*/../../*.txt']\nproviders: [echo]\n" + CHECKED,
        HEAD + "tests: file://{outside}/private.yaml\n",
        HEAD + "tests: file://{outside}/broken.yaml\n",
        HEAD + "tests: ['file://{outside}/*.yaml']\n",
        HEAD + "tests: [{vars: 'file://{outside}/private.yaml'}]\n",
        HEAD + "tests: [{vars: {a: 'file://{outside}/private.txt'}}]\n",
        HEAD + "tests: [{vars: {a: b}, assert: [{type: equals, value: 'file://{outside}/private.txt'}]}]\n",
        "prompts: ['file://{outside}/prompt.py:f']\nproviders: [echo]\n" + CHECKED,
        HEAD + "tests: file://{outside}/tests.js\n",
        HEAD + "defaultTest: 'file://{outside}/private.yaml'\ntests: [{vars: {a: b}}]\n",
        HEAD + "scenarios: ['file://{outside}/private.yaml']\n",
    ],
)
def test_what_a_configuration_names_outside_is_refused(project, outside, written):
    (project.path / "link.txt").symlink_to(outside / "private.txt")
    project.write("promptfooconfig.yaml", written.replace("{outside}", str(outside)))
    ended = project.run("convert", "promptfooconfig.yaml")
    assert ended.status == 2, ended.stderr
    assert "error[outside-repository]" in ended.stderr
    assert "PRIVATE" not in ended.stderr + ended.stdout
    assert not (project.path / "promptfoo.eval.yaml").exists()


def test_allowed_files_are_read_and_not_quoted(project, outside):
    project.write("promptfooconfig.yaml", f"prompts: ['file://{outside}/private.txt']\nproviders: [echo]\n{CHECKED}")
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside")
    assert ended.status == 0, ended.stderr
    assert "PRIVATE {{ a }}" in (project.path / "promptfoo.eval.yaml").read_text()
    assert "PRIVATE" not in ended.stderr
    project.write("promptfooconfig.yaml", f"prompts: ['file://{outside}/wrong.txt']\nproviders: [echo]\n{CHECKED}")
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside")
    assert "error[bad-template]" in ended.stderr
    assert ".map" not in ended.stderr
    project.write("promptfooconfig.yaml", f"{HEAD}tests: file://{outside}/broken.yaml\n")
    (project.path / "promptfoo.eval.yaml").unlink()
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside")
    assert ended.status == 2
    assert "error[bad-yaml]" in ended.stderr
    assert "PRIVATE" not in ended.stderr
