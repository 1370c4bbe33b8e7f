import re
from pathlib import Path

import pytest

import agentv.cli.init as of_init
from agentv.cli.init import TEMPLATES
from e2e.command import Project

SKILLS = sorted((Path(of_init.__file__).parent / "skills").glob("*/SKILL.md"))
COMMAND = re.compile(r"^agentv .*$", re.MULTILINE)


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_template_is_small_green_and_valid(project, template):
    started = project.run("init", "--template", template)
    written = re.findall(r"^wrote (.*)$", started.stderr, re.MULTILINE)
    assert (started.status, 1 <= len(written) <= 3) == (0, True), started.stderr
    shown = re.search(r"agentv (eval \S+)", started.stderr)
    project.run(*shown[1].split(), status=0, says=" 0 failed, 0 errored")
    assert project.run("validate", ".", "--strict").status == 0
    assert project.run("check", ".").status == 0
    assert "agentv view" in started.stderr
    again = project.run("init", "--template", template)
    assert re.findall(r"^kept (.*), which", again.stderr, re.MULTILINE) == written
    for file in project.path.rglob("*.yaml"):  # the lines that are commented out are valid
        file.write_text(re.sub(r"^( +)# (- )", r"\1\2", file.read_text(), flags=re.MULTILINE))
    project.run("validate", ".", env={"AGENTV_JUDGE": "mock:yes"}, status=0)


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """A project with two runs, in which the skills' commands run."""
    project = Project(tmp_path_factory.mktemp("reviewed"))
    project.write(".git/HEAD", "")
    assert project.run("init").status == 0
    for _ in range(2):
        project.run("eval", "evals", status=0)
    return project


@pytest.mark.parametrize("skill", SKILLS, ids=lambda file: file.parent.name)
def test_each_command_of_a_skill_runs(reviewed, skill):
    assert reviewed.run("init", "--skill").status == 0
    text = (reviewed.path / ".claude/skills" / skill.parent.name / "SKILL.md").read_text()
    assert text.startswith(f"---\nname: {skill.parent.name}\ndescription: ")
    assert len(text.split()) < 350
    first = min(path.name for path in (reviewed.path / ".agentv/results").glob("2*"))
    commands = [line.replace(" RUN ", f" {first} ").split()[1:] for line in COMMAND.findall(text)]
    assert len(commands) >= 4
    for words in commands:
        reviewed.run(*words, status=0)


def test_a_project_that_cannot_be_written_is_told_plainly(project):
    project.write("evals", "a file in the place of the directory")
    ended = project.run("init")
    assert (ended.status, "Errno" in ended.stderr) == (2, False)
    reasons = ("a part of its path is a file", "a file exists in its place")
    assert any(f"cannot write evals/chatbot.eval.yaml: {reason}" in ended.stderr for reason in reasons), ended.stderr


def test_what_stands_there_is_kept(project):
    mine = project.write("chatbot.py", "def answer(prompt): return 'mine'\n")
    ended = project.run("init")
    assert mine.read_text() == "def answer(prompt): return 'mine'\n"
    assert "kept chatbot.py" in ended.stderr
    again = project.run("init")
    assert "wrote" not in again.stderr


@pytest.mark.parametrize("git", [False, True])
def test_a_project_in_the_home_directory_is_green_and_keys_stay_closed(tmp_path, git):
    project = Project(tmp_path)
    home = {"HOME": str(tmp_path)}
    if git:
        project.write(".git/HEAD", "")
    project.write_files({".ssh/id_rsa": "k3y-of-mine", ".aws/credentials.yaml": "k3y-of-mine", "notes.txt": "private"})
    assert project.run("init", env=home).status == 0
    project.run("eval", "evals", env=home, status=0, says="4 passed")
    for name in ("../.ssh/id_rsa", "../.aws/credentials.yaml", "../notes.txt"):
        said = f"[{{role: user, content: [{{type: file, value: {name}}}]}}]"
        project.write(
            "evals/a.eval.yaml", f"target: echo\ntests: [{{id: a, input: {said}, assert: [{{contains: hi}}]}}]\n"
        )
        refused = project.run("eval", "evals/a.eval.yaml", env=home, status=2, says="outside-repository")
        assert "k3y" not in refused.stdout + refused.stderr
    project.write("b.eval.yaml", "target: echo\ntests: file://.aws/credentials.yaml\n")
    project.run("eval", "b.eval.yaml", env=home, status=2, says="outside-repository")
