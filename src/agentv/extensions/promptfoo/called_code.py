"""Functions that return tests for promptfoo: called once, when a configuration is converted."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentv.extensions.promptfoo.translation.calls import CodeCall, CodeError
from agentv.extensions.promptfoo.translation.providers.provider_tables import PYTHON
from agentv.model.values.response import Failure
from agentv.user_code.javascript.runtime import find_runtime

TIMEOUT_S = 120.0

_IN_PYTHON = """
import asyncio, importlib.util, inspect, json, os, sys
path, name, given, out = sys.argv[1:5]
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
spec = importlib.util.spec_from_file_location('agentv_converted', path)
module = importlib.util.module_from_spec(spec)
sys.modules['agentv_converted'] = module
spec.loader.exec_module(module)
found = getattr(module, name)
if callable(found):
    found = found(*json.loads(given))
if inspect.isawaitable(found):
    async def awaited():
        return await found
    found = asyncio.run(awaited())
with open(out, 'w', encoding='utf-8') as file:
    json.dump(found, file)
"""

_IN_JAVASCRIPT = """
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const [path, name, given, out] = process.argv.slice(-4);
const module = await import(pathToFileURL(path).href);
const main = module.default?.default ?? module.default ?? module;
const found = name ? (module[name] ?? main[name]) : main;
if (found === undefined) throw new Error(`there is no '${name}' in ${path}`);
const made = typeof found === 'function' ? await found(...JSON.parse(given)) : found;
writeFileSync(out, JSON.stringify(made ?? null));
process.exit(0);
"""


def call_code(call: CodeCall) -> Any:
    """The return value of a function of a file, as plain data.

    Raises:
        CodeError: the function failed, or returned something that is not data; the message says why.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "returned.json"
        command = _command(call, Path(directory), out)
        try:
            ended = subprocess.run(
                command,
                cwd=call.directory,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise CodeError(f"it took longer than {TIMEOUT_S:g} s") from error
        except OSError as error:
            raise CodeError(str(error.strerror)) from error
        if ended.returncode or not out.exists():
            raise CodeError(_reason(ended.stderr))
        return json.loads(out.read_text(encoding="utf-8"))


def _command(call: CodeCall, directory: Path, out: Path) -> list[str]:
    rest = [str(call.path), call.name, json.dumps(call.given), str(out)]
    if call.path.suffix in PYTHON:
        return [sys.executable, "-c", _IN_PYTHON, *rest]
    runtime = asyncio.run(find_runtime(_environment()))
    if isinstance(runtime, Failure):
        raise CodeError(runtime.message)
    script = directory / "call.mjs"
    script.write_text(_IN_JAVASCRIPT, encoding="utf-8")
    return [*runtime.argv, str(script), *rest]


def _environment() -> Mapping[str, str]:
    return dict(os.environ)


def _reason(text: str) -> str:
    """The line of a traceback or a stack that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.partition(":")[0] and not line.startswith("at ")]
    return (errors or lines or ["it returned nothing"])[-1][:300]
