"""`agentv assert`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agentv.app.grade_one import context_from_json, grade_one, verdict_json
from agentv.errors import ExitStatus, UsageError
from agentv.user_code.guard import apart_from_output


@click.command("assert", epilog="Example: agentv assert min-words --output 'Hello there friend'")
@click.argument("name")
@click.option("--output", metavar="TEXT", help="Answer to grade.")
@click.option("--input", "input_text", metavar="TEXT", help="Input that the answer replies to.")
@click.option(
    "--file",
    "payload_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the whole context, and the assertion's options under `config`, from a JSON file.",
)
def command(name: str, output: str | None, input_text: str | None, payload_file: str | None) -> int:
    """Run a single assertion and print its result as JSON.

    Exit status: 0 passed; 1 failed; 2 the command is wrong; 3 the assertion could not grade the answer.
    """
    payload = _payload(payload_file)
    if output is not None:
        payload["output"] = output
    if input_text is not None:
        payload["input"] = [{"role": "user", "content": input_text}]
    if payload.get("output") is None:
        raise UsageError("there is no answer to grade", "give --output TEXT, or --file with an 'output'")
    options = payload.pop("config", None) or {}
    try:
        context = replace(context_from_json(payload), env=dict(os.environ))
    except ValueError as error:
        raise UsageError(f"the payload is wrong: {error}") from error
    with apart_from_output():
        grade = grade_one(name, options, context, Path.cwd())
    if grade.error is not None:
        click.echo(f"error[{grade.error.code}]: {grade.error.message}", err=True)
        return ExitStatus.ERRORED
    click.echo(json.dumps(verdict_json(grade), ensure_ascii=False))
    return ExitStatus.PASSED if grade.passed else ExitStatus.FAILED


def _payload(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        payload = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise UsageError(f"{file} must hold a JSON object")
    return payload
