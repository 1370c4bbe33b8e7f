"""`agentv assert`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentv.app.grade_one import context_from_json, grade_one, verdict_json
from agentv.errors import ExitStatus, UsageError


@click.command("assert", epilog="Example: agentv assert min-words --output 'Hello there friend'")
@click.argument("name")
@click.option("--output", metavar="TEXT", help="The answer to grade.")
@click.option("--input", "input_text", metavar="TEXT", help="What was asked.")
@click.option("--file", "payload_file", type=click.Path(exists=True, dir_okay=False), help="The payload, as JSON.")
def command(name: str, output: str | None, input_text: str | None, payload_file: str | None) -> int:
    """Run one assertion alone and print its result as JSON.

    Exit status: 0 it passed, 1 it did not, 2 the call is wrong, 3 it could not judge.
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
