"""Plugins in installed packages, working and broken, with the installed command."""

import json
from pathlib import Path

import pytest

from doubles.plugin_packages import TARGET, install, install_acme, install_extension
from e2e.command import Ended, Project

SUITE = """
target: capitals:!
tests:
  - id: greeting
    input: hello hello
    assert:
      - type: twice
        value: HELLO
      - not-twice: "!"
"""


def run(project: Project, *words: str, status: int | None = None, says: str = "", **env: str) -> Ended:
    return project.run(*words, status=status, says=says, env={"PYTHONPATH": str(project.path / "site"), **env})


@pytest.fixture
def acme(project: Project) -> Project:
    install_acme(project.path / "site")
    project.write("suite.eval.yaml", SUITE)
    return project


def test_a_plugin_of_each_kind_is_used(acme):
    run(acme, "eval", "suite.eval.yaml", "-o", "run.tap", status=0)
    (row,) = acme.rows()
    assert row["output"] == "HELLO HELLO!"
    assert [score["name"] for score in row["scores"]] == ["twice: 'HELLO'", "not-twice: '!'"]
    assert (acme.path / "run.tap").read_text() == "ok 1 greeting\n"
    assert run(acme, "results", "export", "last", "-o", "again.tap").status == 0
    assert (acme.path / "again.tap").read_text() == "ok 1 greeting\n"
    record = json.loads(next(acme.path.glob(".agentv/results/*/run.json")).read_text())
    assert record["suites"][0]["targets"][0]["plugin"] == "acme-evals 1.2"


def test_they_are_listed(acme):
    ended = run(acme, "plugins")
    assert (ended.status, ended.stderr) == (0, "")
    lines = [line.split(maxsplit=5) for line in ended.stdout.splitlines() if line[0] != " "]
    assert [line for line in lines if line[0] != "extension"] == [
        ["KIND", "NAME", "PACKAGE", "VERSION", "STATUS", "DESCRIPTION"],
        ["assertion", "twice", "acme-evals", "1.2", "ok", "The answer contains a text at least twice."],
        ["target", "capitals", "acme-evals", "1.2", "ok", "Answers with the prompt in capitals."],
        ["report", "tap", "acme-evals", "1.2", "ok", "Test Anything Protocol."],
    ]


def test_what_is_wrong_in_a_file_is_said_at_its_place(acme):
    acme.write(
        "wrong.eval.yaml",
        "target: {provider: capitals, mrak: '!'}\ntests:\n- {id: a, input: a, assert: [{type: twise, value: a}]}\n",
    )
    ended = run(acme, "validate", "wrong.eval.yaml", status=2, says="wrong.eval.yaml:1:30: error[unknown-key]")
    assert "did you mean 'mark'?" in ended.stderr
    assert "wrong.eval.yaml:3:37: error[unknown-assertion]: no assertion type 'twise'" in ended.stderr
    assert "did you mean 'twice'?" in ended.stderr
    assert "did you mean 'capitals'?" in run(acme, "eval", "suite.eval.yaml", "-t", "captials:a").stderr
    assert "did you mean '.tap'?" in run(acme, "eval", "suite.eval.yaml", "-o", "a.tpa").stderr


def test_a_broken_one_that_nothing_uses_stops_nothing_and_is_listed(acme):
    install(
        acme.path / "site", {"targets": {"bad": "bad_one:X"}}, {"bad_one.py": "raise ValueError('no')\n"}, package="bad"
    )
    run(acme, "eval", "suite.eval.yaml", "--strict", status=0)
    ended = run(acme, "plugins", "--json", status=2)
    (wrong,) = [one for one in json.loads(ended.stdout) if one["status"] != "ok"]
    assert (wrong["name"], wrong["package"], wrong["code"]) == ("bad", "bad", "bad-plugin")
    assert "ValueError: no" in wrong["problem"]
    assert "bad_one.py:1" in wrong["problem"]


def test_what_a_plugin_prints_does_not_reach_the_output_of_programs(project):
    text = "import os, sys\nprint('printed')\nsys.stdout.write('written')\n" + TARGET
    install(project.path / "site", {"targets": {"capitals": "noisy:Capitals"}}, {"noisy.py": text})
    project.write("suite.eval.yaml", SUITE.replace("- type: twice", "- contains: HELLO").partition("        value")[0])
    ended = run(project, "eval", "suite.eval.yaml", "--json", status=0)
    assert json.loads(ended.stdout)
    assert "printed" in ended.stderr
    assert json.loads(run(project, "plugins", "--json").stdout)[0]["status"] == "ok"


def test_another_version_or_edited_code_gives_no_stale_answers(acme):
    def answered() -> tuple[str, bool]:
        assert run(acme, "eval", "suite.eval.yaml", "--cache").status in (0, 1)
        (row,) = acme.rows()
        return row["output"], bool(row.get("reused"))

    assert answered() == ("HELLO HELLO!", False)
    assert answered() == ("HELLO HELLO!", True)
    code = acme.path / "site" / "acme_evals" / "targets.py"
    code.write_text(
        code.read_text().replace(".upper() +", ".title()  +")
    )  # a different length, because the time may be equal
    assert answered() == ("Hello Hello!", False)
    assert answered() == ("Hello Hello!", True)
    (acme.path / "site" / "acme_evals-1.2.dist-info").rename(acme.path / "site" / "acme_evals-1.3.dist-info")
    assert answered() == ("Hello Hello!", False)


def test_a_method_that_no_trial_can_answer_for_names_the_plugin(acme):
    code = acme.path / "site" / "acme_evals" / "targets.py"
    code.write_text(
        code.read_text().replace(
            "    def connect", "    def refuses(self, block):\n        raise ValueError('no')\n\n    def connect"
        )
    )
    acme.write("a.txt", "text")
    acme.write(
        "suite.eval.yaml",
        SUITE.replace("input: hello hello", "input: [{role: user, content: [{type: file, value: a.txt}]}]"),
    )
    ended = run(acme, "eval", "suite.eval.yaml", status=2)
    shown = "error: provider 'capitals' of acme-evals 1.2 raised ValueError: no (site/acme_evals/targets.py:"
    assert shown in ended.stderr


def test_a_secret_setting_is_written_nowhere(acme):
    acme.write(
        "suite.eval.yaml",
        SUITE.replace("capitals:!", "{name: s, provider: capitals, mark: '!', api_key: '${{ TEAM_KEY }}'}"),
    )
    assert run(acme, "eval", "suite.eval.yaml", TEAM_KEY="sk-1234567890abcdef").status == 0
    written = [path for path in Path(acme.path, ".agentv").rglob("*") if path.is_file()]
    assert [path for path in written if b"sk-1234567890abcdef" in path.read_bytes()] == []


@pytest.fixture
def extended(project: Project) -> Project:
    install_extension(project.path / "site")
    project.write("suite.eval.yaml", SUITE)
    return project


def test_an_extension_of_a_package_adds_what_those_of_agentv_add(extended):
    assert "\n  greet " in run(extended, "--help").stdout.partition("\nShare:")[2].partition("\nMore:")[0]
    greeted = run(extended, "greet", "you")
    assert (greeted.status, greeted.stdout, greeted.stderr) == (0, "hello you\n", "")
    ended = run(extended, "eval", "suite.eval.yaml", "--polite", "-o", "run.tap", status=0)
    assert ended.stderr.startswith("please\n")
    assert (extended.path / "run.tap").read_text() == "ok 1 greeting\n"
    assert extended.rows()[0]["output"] == "HELLO HELLO!"
    exported = run(extended, "results", "export", "--format", "lines", "-o", "run.txt")
    assert (exported.status, exported.stderr) == (0, "lines: run.txt\n")
    extended.write("acme.yaml", "acme: [a]\n")
    run(extended, "eval", "acme.yaml", status=0, says="note: acme.yaml is read as a list of Acme")
    assert run(extended, "convert", "acme.yaml").status == 0
    assert run(extended, "eval", "acme.eval.yaml").status == 0
    extended.write("promptfooconfig.yaml", "acme: [a]\n")
    both = run(extended, "validate", "promptfooconfig.yaml", status=2, says="two dialects claim this file")
    assert "a promptfoo configuration and a list of Acme" in both.stderr
    (extended.path / "promptfooconfig.yaml").unlink()
    extended.write(".agentv/config.yaml", "acme: no\n")
    assert "config.yaml:1:7: error[bad-value]: 'acme' must be yes" in run(extended, "validate", ".").stderr
    extended.write(".agentv/config.yaml", "acme: 'yes'\n")
    assert run(extended, "validate", "suite.eval.yaml").status == 0
    assert "too slow" in run(extended, "eval", "suite.eval.yaml", "--executor", "slow").stderr


def test_what_an_extension_of_a_package_adds_is_listed(extended):
    ended = run(extended, "plugins", "--json", status=0)
    listed = json.loads(ended.stdout)
    (ours,) = [one for one in listed if one["name"] == "ray"]
    assert ours["adds"] == {"executor": ["ray"]}
    theirs = {(one["kind"], one["name"]): one for one in listed if one["package"] == "acme-evals"}
    assert list(theirs) == [
        ("extension", "acme"),
        ("assertion", "twice"),
        ("target", "capitals"),
        ("report", "tap"),
        ("beside run", "polite"),
        ("command", "greet"),
        ("command section", "greet"),
        ("config key", "acme"),
        ("dialect", "acme-list"),
        ("executor", "slow"),
        ("option", "eval --polite"),
        ("sign of a dialect", "name:acme.yaml"),
        ("trace format", "lines"),
    ]
    assert theirs["extension", "acme"]["summary"] == "What Acme adds to agentv."
    assert theirs["command", "greet"]["summary"] == "Greet somebody."
    assert theirs["command", "greet"]["file"].endswith("acme_evals/agentv_tables.py")
    assert theirs["command", "greet"]["line"] == 4


BROKEN = {
    "module": ({"agentv_tables": "import nowhere\n"}, "extension 'acme' of acme-evals 1.2 cannot be loaded: Module"),
    "exits": ({"agentv_tables": "import sys\nsys.exit(3)\n"}, "cannot be loaded: it called sys.exit(3)"),
    "table": ({"agentv_tables": "COMANDS = {}\n"}, "no extension has a table COMANDS; did you mean COMMANDS?"),
    "ours": ({"agentv_tables": "PORTS = {'a': 'b:c'}\n"}, "the table PORTS is for agentv's own extensions"),
    "no table": ({"agentv_tables": "COMMANDS = 3\n"}, "COMMANDS must map names to text such as"),
    "no text": ({"agentv_tables": "COMMANDS = {'greet': print}\n"}, "COMMANDS must map names to text such as"),
    "no place": (
        {"agentv_tables": "COMMANDS = {'greet': 'acme evals!'}\nOPTIONS = {'eval --hi': 'no where'}\n"},
        "an entry must read NAME = module:Class, found 'acme evals!' (site/acme_evals/agentv_tables.py:1)",
    ),
    "no command": (
        {"commands": "greet = 3\nPOLITE = 4\nbeside = lambda *_, **__: None\ncheck_key = executor = beside\n"},
        "acme_evals.commands:greet must be a click.Command, found int (site/acme_evals/agentv_tables.py:4)",
    ),
    "dialect": ({"dialect": "raise ValueError('no')\n"}, "dialect 'acme-list' of acme-evals 1.2 cannot be loaded"),
    "core": (
        {
            "agentv_tables": "COMMANDS = {'eval': 'a:b'}\nOPTIONS = {'eval --out': 'a:b'}\nEXECUTORS = {'local': 'a:b'}\n"
        },
        "command 'eval' of acme-evals 1.2 is not used: 'eval' is built in, which is used instead",
    ),
    "extension": (
        {"agentv_tables": "COMMANDS = {'view': 'a:b'}\n"},
        "command 'view' of acme-evals 1.2 is not used: 'view' is built in",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_extension_is_listed_and_stops_no_other_command(project, how):
    files, why = BROKEN[how]
    install_extension(project.path / "site", **files)
    project.write("suite.eval.yaml", "target: echo\ntests: [{id: a, input: a, assert: [{contains: a}]}]\n")
    listed = run(project, "plugins")
    assert why in listed.stdout
    assert listed.status == (0 if "is not used" in why else 2)
    run(project, "eval", "suite.eval.yaml", status=0)


def test_a_broken_command_says_why_where_it_is_called(project):
    install_extension(project.path / "site", commands="import nowhere\n")
    ended = run(project, "greet", "you", "--loud")
    assert (ended.status, ended.stdout) == (2, "")
    assert "error: [bad-plugin] command 'greet' of acme-evals 1.2 cannot be loaded: ModuleNotFoundError" in ended.stderr
    assert "upgrade acme-evals, or remove it: pip uninstall acme-evals" in ended.stderr


def test_a_command_that_raises_names_its_plugin(extended):
    ended = run(extended, "greet", "nobody", status=2)
    assert "error: extension 'acme' of acme-evals 1.2 raised ZeroDivisionError: division by zero (site" in ended.stderr


def test_of_two_extensions_with_one_name_neither_is_used(extended):
    tables = "COMMANDS = {'greet': 'other:greet', 'leave': 'other:leave'}\n"
    install(extended.path / "site", {"extensions": {"other": "other"}}, {"other.py": tables}, package="other")
    taken = "command 'greet' is registered by acme-evals 1.2 and other 1.2, so neither is used"
    assert taken in run(extended, "greet", "you").stderr
    said = run(extended, "validate", "suite.eval.yaml").stderr
    assert taken in said
    assert "site/other.py:1:14: warning[bad-plugin]" in said
    install(extended.path / "site", {"extensions": {"acme": "other"}}, {"other.py": tables}, package="other")
    assert "extension 'acme' is registered by acme-evals 1.2 and other 1.2" in run(extended, "plugins").stdout


def test_nothing_is_looked_for_that_a_command_does_not_need(extended):
    (extended.path / "site/acme_evals/agentv_tables.py").write_text("print('imported')\n")
    for words in (("--version",), ("results", "list"), ("push", "--help"), ("explain", "bad-plugin")):
        ended = run(extended, *words)
        assert (ended.status, "imported" in ended.stderr) == (0, False), words
    assert "imported" in run(extended, "--help").stderr
