"""What JavaScript and TypeScript load: workspaces, names of a package, paths of a config; the rest is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentv.authoring.code.code_imports import with_imports
from agentv.authoring.code.script_imports import loads_of_script
from doubles.loading import repository

CONFIG = """{
  // where things lie
  "compilerOptions": {"paths": {"@lib/*": ["./src/lib/*"],},},
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
        ("import x from 'dep/inner'", {"node_modules/dep/package.json"}),
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
    files = {str(Path(one).relative_to(folder)) for one in with_imports(str(folder / "agent.mjs"))}
    assert files - {"agent.mjs", "tsconfig.json"} == found


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("require(name)", True),
        ("await import(name)", True),
        ("await import(`${place}/x.js`)", True),
        ("require('a' + name)", True),
        ("const load = createRequire(import.meta.url); load(name)", True),
        ("import { spawn } from 'child_process'", True),
        ("Bun.spawn(['x'])", True),
        ("const load = require\nload(name)", True),
        ("module.require(name)", True),
        ("eval(text)", True),
        ("const require = createRequire(import.meta.url); require('./a')", False),
        ("await import('./a.js')", False),
        ("await import(`./plug/${name}.js`)", False),
        ("import(\n  /* webpack */ './a.js')", False),
        ("/x/.exec(text); model.eval(1)", False),
    ],
)
def test_what_cannot_be_followed_is_told_apart(text, unknown):
    assert loads_of_script(text.encode()).unknown is unknown
