"""Untrusted repositories: no command shows files outside them or a token of a git host."""

import json
import os
from pathlib import Path

import pytest

from doubles.git_remotes import Hosts, Remote
from e2e.command import Project

SECRET = "c2VjcmV0LWtleS1tYXRlcmlhbA"
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}: [\n-----END OPENSSH PRIVATE KEY-----\n"
SUITE = "target: echo\ntests: {tests}\n"
CASE = "target: echo\ntests:\n  - id: a\n    input: hello\n    assert: [{assertion}]\n"


@pytest.fixture
def key(project: Project, tmp_path: Path) -> Path:
    """A private file outside the repository."""
    path = tmp_path.parent / f"{tmp_path.name}-private" / "id_rsa"
    path.parent.mkdir()
    path.write_text(KEY)
    return path


def linked(project: Project, name: str, key: Path) -> None:
    link = project.path / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(key)


LINKS = {
    "cases.jsonl": SUITE.format(tests="cases.jsonl"),
    "cases.csv": SUITE.format(tests="cases.csv"),
    "cases.json": SUITE.format(tests="cases.json"),
    "cases/one.yaml": SUITE.format(tests="cases/*.yaml"),
    "cases/a/case.yaml": SUITE.format(tests="cases"),
    "rows.py": SUITE.format(tests="rows.py:rows"),
    "schema.json": CASE.format(assertion="{type: json-schema, value: ./schema.json}"),
    "check.py": CASE.format(assertion="{type: python, value: 'file://check.py:check'}"),
    "judge.md": CASE.format(assertion="{type: llm-rubric, value: good, prompt: ./judge.md}"),
    ".agentv/templates/shared.yaml": CASE.format(assertion="{include: shared}"),
    ".agentv/targets.yaml": CASE.format(assertion="{contains: a}"),
    ".agentv/config.yaml": CASE.format(assertion="{contains: a}"),
    ".env": CASE.format(assertion="{contains: a}"),
    "prompt.txt": f"prompts: [file://prompt.txt]\n{CASE.format(assertion='{contains: a}')}",
    "notes.md": f"input_files: [notes.md]\n{CASE.format(assertion='{contains: a}')}",
}


def test_links_that_lead_out_of_the_repository_show_nothing(project: Project, key: Path) -> None:
    for number, (name, text) in enumerate(LINKS.items()):
        linked(project, f"{number}/{name}", key)
        project.write(f"{number}/a.eval.yaml", text)
    linked(project, "suite.eval.yaml", key)
    for words in (["."], [".", "--json"]):
        ended = project.run("validate", *words)
        told = ended.stderr + ended.stdout
        assert (ended.status, SECRET in told, "OPENSSH" in told) == (2, False, False)
    refused = {one["file"].partition("/")[0] for one in json.loads(ended.stdout) if "outside" in one["message"]}
    assert refused == {"suite.eval.yaml", *map(str, range(len(LINKS)))}


def test_a_file_that_is_allowed_from_outside_is_read_and_never_quoted(project: Project, key: Path) -> None:
    linked(project, "cases.jsonl", key)
    project.write("evals.yaml", SUITE.format(tests="cases.jsonl"))
    ended = project.run("validate", "evals.yaml", "--allow-outside", status=2, says="bad-json")
    assert SECRET not in ended.stderr
    assert SECRET not in project.run("validate", "evals.yaml", "--allow-outside", "--json").stdout
    key.write_text('{"id": "a", "input": "hello", "assert": [{"contains": "hello"}]}\n')
    assert project.run("eval", "evals.yaml", "--allow-outside").status == 0
    assert project.run("eval", "evals.yaml").status == 2


def test_what_would_run_is_listed_without_a_word_of_files_outside(project: Project, key: Path) -> None:
    linked(project, "cases.jsonl", key)
    project.write("evals.yaml", SUITE.format(tests="cases.jsonl"))
    ended = project.run("eval", "evals.yaml", "--list")
    assert (ended.status, "outside-repository" in ended.stderr, SECRET in ended.stderr) == (2, True, False)


def test_the_environment_of_the_process_is_no_file_of_cases(project: Project) -> None:
    project.write("evals.yaml", SUITE.format(tests="file:///proc/self/environ"))
    ended = project.run("validate", "evals.yaml", env={"MY_TOKEN": SECRET})
    assert (ended.status, "outside-repository" in ended.stderr, SECRET in ended.stderr) == (2, True, False)


def test_whether_a_file_is_there_is_not_told_either(project: Project, key: Path) -> None:
    project.write("evals.yaml", CASE.format(assertion=f"{{include: {os.path.relpath(key, project.path)}}}"))
    there = project.run("validate", "evals.yaml").stderr
    key.unlink()
    assert project.run("validate", "evals.yaml").stderr == there


def test_pipes_in_place_of_files_end_at_once(project: Project) -> None:
    for number, (name, text) in enumerate(LINKS.items()):
        project.write(f"{number}.eval.yaml", text)
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project.path / name)
    os.mkfifo(project.path / "pipe.eval.yaml")
    os.mkfifo(project.path / "pipe.eval.py")
    assert project.run("validate", ".", timeout=20).status == 2


def test_links_in_circles_do_not_make_a_pattern_endless(project: Project) -> None:
    for name in ("a", "b"):
        (project.path / name).symlink_to(project.path)
    project.write("cases/one.jsonl", '{"id": "a", "input": "hello", "assert": [{"contains": "hello"}]}\n')
    project.write("evals.yaml", SUITE.format(tests='"**/*.jsonl"'))
    assert project.run("eval", "evals.yaml", timeout=20).status == 0


def test_a_cell_runs_no_command_unless_the_data_is_trusted(project: Project) -> None:
    project.write("rows.csv", "question,__expected\nhello,\"python: open('ran', 'w').write(output) > 0\"\n")
    project.write("evals.yaml", "target: echo\ninput: '{{ question }}'\ntests: rows.csv\n")
    for words in (("validate", "evals.yaml"), ("eval", "evals.yaml")):
        project.run(*words, status=2, says="error[untrusted-data]")
        assert not (project.path / "ran").exists()
    assert project.run("validate", "evals.yaml", "--trust-data").stderr == "valid\n"
    assert project.run("eval", "evals.yaml", "--trust-data").status == 0
    assert (project.path / "ran").read_text() == "hello"


def test_a_generator_gives_data(project: Project) -> None:
    cases = "def cases():\n    yield {'id': 'a', 'input': 'x', 'assert': [{'python': 'True'}]}\n"
    project.write_files({"rows.py": cases, "evals.yaml": SUITE.format(tests="rows.py:cases")})
    project.run("eval", "evals.yaml", status=2, says="error[untrusted-data]: case 1, assert[0]")
    assert project.run("eval", "evals.yaml", "--trust-data").status == 0


def test_convert_keeps_promptfoos_code_in_data_and_says_so(project: Project) -> None:
    project.write("promptfooconfig.yaml", "prompts: ['{{ q }}']\nproviders: [echo]\ntests: rows.csv\n")
    project.write("rows.csv", "q,__expected\nhello,python: output == 'hello'\n")
    project.run("convert", "promptfooconfig.yaml", status=0, says="trust_data: true")
    assert "run:\n  trust_data: true\n" in (project.path / "promptfoo.eval.yaml").read_text()
    assert project.run("eval", "promptfoo.eval.yaml").status == 0
    project.write("rows.csv", "q,__expected\nhello,equals: hello\n")
    (project.path / "promptfoo.eval.yaml").unlink()
    assert "trust" not in project.run("convert", "promptfooconfig.yaml").stderr


def test_a_repository_that_holds_the_home_directory_is_read_but_for_that(project):
    """As in a container; in these tests the home directory is inside the project."""
    (project.path / "home").mkdir()
    project.write(".agentv/targets.yaml", "targets: [{name: bot, provider: echo}]\ndefaults: {target: bot}\n")
    project.write("shared/rows.jsonl", '{"id": "a", "input": "hello", "assert": [{"contains": "hello"}]}\n')
    project.write("home/rows.jsonl", '{"id": "a", "input": "secret-word", "assert": [{"contains": "x"}]}\n')
    project.write("evals/right.eval.yaml", "tests: ../shared/rows.jsonl\n")
    project.write("evals/wrong.eval.yaml", "tests: ../home/rows.jsonl\n")
    project.run("eval", "evals/right.eval.yaml", status=0, says="1 passed")
    ended = project.run("eval", "evals/wrong.eval.yaml", status=2, says="error[outside-repository]")
    assert "secret-word" not in ended.stderr


def test_a_repository_that_is_the_home_directory_is_not_read_as_a_whole(project):
    project.write("rows.jsonl", '{"id": "a", "input": "hello", "assert": [{"contains": "hello"}]}\n')
    project.write("evals/a.eval.yaml", "target: echo\ntests: ../rows.jsonl\n")
    ended = project.run("eval", "evals/a.eval.yaml", env={"HOME": str(project.path)})
    assert (ended.status, "error[outside-repository]" in ended.stderr) == (2, True), ended.stderr


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


WRITTEN = (
    "prompts: ['file://{outside}/private.txt']\nproviders: [echo]\n" + CHECKED,
    "prompts: ['file://link.txt']\nproviders: [echo]\n" + CHECKED,
    "prompts: [link.txt]\nproviders: [echo]\n" + CHECKED,
    "prompts: ['*.txt']\nproviders: [echo]\n" + CHECKED,
    "prompts: ['../../*.txt']\nproviders: [echo]\n" + CHECKED,
    "prompts: ['*/../../../*.txt']\nproviders: [echo]\n" + CHECKED,
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
)


def test_what_a_configuration_names_outside_is_refused(project, outside):
    for number, written in enumerate(WRITTEN):
        project.write(f"{number}/promptfooconfig.yaml", written.replace("{outside}", str(outside)))
        (project.path / f"{number}/link.txt").symlink_to(outside / "private.txt")
    ended = project.run("validate", ".", "--json")
    codes = {(one["file"].partition("/")[0], one["code"]) for one in json.loads(ended.stdout)}
    assert {place for place, code in codes if code == "outside-repository"} == set(map(str, range(len(WRITTEN))))
    assert "PRIVATE" not in ended.stderr + ended.stdout
    ended = project.run("convert", "0/promptfooconfig.yaml")
    assert (ended.status, list(project.path.rglob("promptfoo.eval.yaml"))) == (2, [])
    assert "PRIVATE" not in ended.stderr + ended.stdout


def test_allowed_files_are_read_and_not_quoted(project, outside):
    project.write("promptfooconfig.yaml", f"prompts: ['file://{outside}/private.txt']\nproviders: [echo]\n{CHECKED}")
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside", status=0)
    assert "PRIVATE {{ a }}" in (project.path / "promptfoo.eval.yaml").read_text()
    assert "PRIVATE" not in ended.stderr
    project.write("promptfooconfig.yaml", f"prompts: ['file://{outside}/wrong.txt']\nproviders: [echo]\n{CHECKED}")
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside", says="error[bad-template]")
    assert ".map" not in ended.stderr
    project.write("promptfooconfig.yaml", f"{HEAD}tests: file://{outside}/broken.yaml\n")
    (project.path / "promptfoo.eval.yaml").unlink()
    ended = project.run("convert", "promptfooconfig.yaml", "--allow-outside", status=2, says="error[bad-yaml]")
    assert "PRIVATE" not in ended.stderr


URL = "https://github.com/acme/evals/blob/{}/docs/a.md"
GIT_FILES_SUITE = (
    "name: a\ntarget: echo\ninput_files: ['%s']\ntests: [{id: one, input: hi, assert: [{contains: first}]}]\n"
)


@pytest.fixture
def hosts(tmp_path) -> Hosts:
    return Hosts(tmp_path / "hosts")


@pytest.fixture
def remote(hosts) -> Remote:
    return hosts.repository("github.com/acme/evals", {"docs/a.md": "first\n"})


def test_a_repository_that_is_not_found_any_more_serves_as_it_was_with_a_warning(project, hosts, remote):
    project.write("a.eval.yaml", GIT_FILES_SUITE % URL.format("main"))
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    assert (ended.status, "stale-repository" in ended.stdout + ended.stderr) == (0, False), ended.stdout + ended.stderr
    remote.folder.rename(hosts.folder / "gone")
    hosts.a_day_passes()
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    told = ended.stdout + ended.stderr
    assert ended.status == 0, told
    assert "warning[stale-repository]: github.com/acme/evals cannot be read now; using 'main' as of" in told
    assert "does not appear to be a git repository" in told


TOKEN = "ghp-Zq8Wv3Rt6Yb1Nc9XkL2pM5"


def test_a_token_in_a_url_is_refused_and_never_shown(project, hosts, remote):
    """Git itself authenticates to private repositories; tokens are removed from its errors too."""
    url = f"https://x-access-token:{TOKEN}@github.com/acme/evals/blob/main/docs/a.md"
    query = f"{URL.format('main')}?token={TOKEN}"
    text = f"target: echo\nprompts: ['{url}']\ninput_files: ['{query}']\ntests: [{{id: a, input: x, assert: [contains: x]}}]\n"
    project.write("a.eval.yaml", text)
    for command in (("validate",), ("validate", "--json"), ("eval", "--list"), ("eval",)):
        ended = project.run(*command, "a.eval.yaml", env=hosts.env)
        told = ended.stdout + ended.stderr
        assert (ended.status, told.count("contains a user or a token")) == (2, 2), told
        assert TOKEN not in told
    project.write("a.eval.yaml", GIT_FILES_SUITE % URL.format("main"))
    inserted = {"GIT_CONFIG_KEY_0": f"url.https://bob:{TOKEN}@127.0.0.1:1/.insteadOf"}
    ended = project.run("eval", "a.eval.yaml", env={**hosts.env, **inserted}, says="cannot reach github.com/acme/evals")
    assert TOKEN not in ended.stdout + ended.stderr
    kept = [*project.path.rglob("*"), *hosts.home.rglob("*")]
    assert not any(TOKEN in str(path) or (path.is_file() and TOKEN.encode() in path.read_bytes()) for path in kept)
