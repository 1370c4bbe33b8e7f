"""The digest of code behind checks includes its imports."""

import json
from pathlib import Path

import pytest

from agentv.assertions.user_code.script_and_python import JavaScriptCode
from agentv.authoring.code import code_imports
from agentv.authoring.code.code_imports import loads_of_script, with_imports
from agentv.authoring.code.command_files import paths_of_command
from agentv.authoring.code.fingerprints import digests_behind
from agentv.model.suite.files import SearchPaths
from agentv.registry.fields import Command, JavaScriptSource
from doubles.loading import repository


def imported(folder: Path, name: str) -> set[str]:
    first, *others = with_imports(str(folder / name))
    assert first == str(folder / name)
    return {str(Path(one).relative_to(folder)) for one in others}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("check.py", "import rules", {"checks/rules.py", "words.py"}),
        ("check.py", "def f():\n    from pkg.deep import leaf", {"checks/pkg/__init__.py", "checks/pkg/deep.py"}),
        ("check.py", "from pkg import deep", {"checks/pkg/__init__.py", "checks/pkg/deep.py"}),
        ("check.py", "from . import rules", {"checks/rules.py", "words.py"}),
        ("check.py", "from ..words import bad", {"words.py"}),
        ("check.py", "import importlib\nimportlib.import_module('words')", {"words.py"}),
        ("check.py", "import json, installed", set()),
        ("check.py", "import loop", {"checks/loop.py"}),
        ("check.py", "import rules\nthis is no Python", set()),
        ("check.mjs", "import { a } from './rules'", {"checks/rules.ts", "words.json"}),
        ("check.mjs", 'export * from "./rules.js"', {"checks/rules.ts", "words.json"}),
        ("check.mjs", "const a = require('../lib')", {"lib/index.mjs"}),
        ("check.mjs", "await import(`./rules.ts`)", {"checks/rules.ts", "words.json"}),
        ("check.mjs", "import fs from 'fs'\nimport x from '../../outside.js'", set()),
        ("check.mjs", "import x from './node_modules/x.js'", set()),
    ],
)
def test_what_code_imports(tmp_path, name, text, found):
    files = {
        "checks/rules.py": "import words\n",
        "words.py": "bad = []\n",
        **dict.fromkeys(("checks/pkg/__init__.py", "checks/pkg/deep.py", "lib/site-packages/installed.py"), ""),
        "checks/loop.py": "import check\n",
        "checks/rules.ts": "import words from '../words.json'; import c from './check.mjs'\n",
        "words.json": "[]",
        **dict.fromkeys(("lib/index.mjs", "checks/node_modules/x.js"), ""),
    }
    (tmp_path / "outside.js").write_text("")
    assert imported(repository(tmp_path / "here", {**files, f"checks/{name}": text}), f"checks/{name}") == found


def test_a_closure_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(code_imports, "MOST_FILES", 5)
    folder = repository(tmp_path, {f"m{number}.py": f"import m{number + 1}\n" for number in range(10)})
    assert len(with_imports(str(folder / "m0.py"))) == 5


def test_an_edit_of_what_is_imported_and_a_module_that_comes_later_change_the_key(tmp_path):
    folder = repository(tmp_path, {"check.mjs": "import './a/rules.mjs'\n"})
    assertion = JavaScriptCode(JavaScriptSource(path=str(folder / "check.mjs")))
    seen = [digests_behind(assertion)]
    for text in ("one", "three"):
        repository(tmp_path, {"a/rules.mjs": text})
        seen.append(digests_behind(assertion))
    assert len(set(seen)) == len(seen) == 3
    assert digests_behind(assertion) == seen[-1]


@pytest.mark.parametrize(
    "command",
    [
        Command(("bash", "-c", "python3 checks/c.py")),
        Command(("bash", "-c", "sh -c 'python3 checks/c.py;true'")),
        Command(shell="cd checks && python3 c.py"),
        Command(shell="cd checks/pkg; cd ..; python3 c.py|tee log"),
        Command(("python3", "-m", "checks.c")),
        Command(shell="(python3 -mchecks.c)"),
        Command(shell="echo a#b && python3 checks/c.py"),
        Command(("grade", "--with=checks/c.py")),
    ],
    ids=str,
)
def test_commands(tmp_path, command):
    here = Command(command.argv, command.shell, str(tmp_path))
    assert str(tmp_path / "checks/c.py") in paths_of_command(here, SearchPaths())


def test_a_line_that_is_no_shells_and_a_word_without_end_are_read_as_far_as_they_go(tmp_path):
    shown = str(tmp_path / "c.py")
    assert shown in paths_of_command(Command(shell="python3 c.py 'open", cwd=str(tmp_path)), SearchPaths())
    assert paths_of_command(Command(("x" * 5000, "a\0b"), cwd=str(tmp_path)), SearchPaths()) == ()


CONFIG = """{
  // where things lie
  "compilerOptions": {"paths": {"*": ["./plug/*"], "@lib/*": ["./src/lib/*"],},},
}"""
FILES = {
    "packages/lib/package.json": json.dumps(
        {"name": "@me/lib", "main": "src/main.js", "exports": {".": "./src/main.js", "./*": {"import": "./src/*.mjs"}}}
    ),
    "packages/lib/src/main.js": "",
    "packages/lib/src/part.mjs": "",
    "node_modules/dep/package.json": '{"version": "1.0.0"}',
    "node_modules/dep/index.js": "",
    "package.json": json.dumps({"imports": {"#own": "./src/own.mjs"}}),
    "src/own.mjs": "",
    "src/lib/f.ts": "",
    "plug/one.js": "",
    "plug/deep/two.js": "",
    "tsconfig.json": CONFIG,
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("require('@me/lib')", {"packages/lib/package.json", "packages/lib/src/main.js"}),
        ("import x from '@me/lib/part'", {"packages/lib/package.json", "packages/lib/src/part.mjs"}),
        ("import x from 'dep'", {"node_modules/dep/package.json"}),
        ("import x from '#own'", {"package.json", "src/own.mjs"}),
        ("import x from '@lib/f'", {"src/lib/f.ts"}),
        ("await import(`./plug/${name}.js`)", {"plug/one.js", "plug/deep/two.js"}),
        ("require('./plug/' + name)", {"plug/one.js", "plug/deep/two.js"}),
        ("new Worker('./plug/one.js')", {"plug/one.js"}),
        ("import fs from 'node:fs'", set()),
    ],
)
def test_names(tmp_path, text, found):
    folder = repository(tmp_path, {**FILES, "agent.mjs": text})
    (folder / "node_modules/@me").mkdir()
    (folder / "node_modules/@me/lib").symlink_to("../../packages/lib")
    assert imported(folder, "agent.mjs") - {"tsconfig.json"} == found


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("require(name)", True),
        ("await import(name)", True),
        ("await import(`${place}/x.js`)", True),
        ("const load = createRequire(import.meta.url); load(name)", True),
        ("import { spawn } from 'child_process'", True),
        ("const load = require\nload(name)", True),
        ("eval(text)", True),
        ("const require = createRequire(import.meta.url); require('./a')", False),
        ("await import('./a.js')", False),
        ("await import(`./plug/${name}.js`)", False),
        ("/x/.exec(text); model.eval(1)", False),
    ],
)
def test_what_cannot_be_followed_is_told_apart(text, unknown):
    assert loads_of_script(text.encode()).unknown is unknown
