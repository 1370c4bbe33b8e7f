"""`agentv assert`: grade one answer with a single assertion."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.app.wiring import Connections
from agentv.assertions.user_code.result import ReturnedVerdict, wire_of
from agentv.authoring.loading.load import load_entry
from agentv.authoring.source.masking import environment_secrets, secrets_in
from agentv.engine.grading import grade_entries
from agentv.engine.trial import TrialServices
from agentv.errors import ExitStatus, LoadError, UsageError
from agentv.model.redaction import Redactor
from agentv.model.run.context import AssertionContext, Judge, context_from_json
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.ports import Embedder
from agentv.user_code.guard import output_to_stderr
from agentv.user_code.processes import kill_all

_OPTIONS = """options are set under 'config' in the file of --file: {"output": "…", "config": {"value": "…"}}"""


class StandaloneServices(TrialServices, frozen=True):
    """The services of an assertion outside a run, without judges and embedders."""

    def judge(self, name: str | None) -> Judge:
        """Raise, because there are no judges.

        Raises:
            LookupError: always.
        """
        raise LookupError(f"'agentv assert' has no judge{f' {name!r}' if name else ''}; use 'agentv eval'")

    def embedder(self, name: str | None) -> Embedder:
        """Raise, because there are no embedders.

        Raises:
            LookupError: always.
        """
        raise LookupError(f"'agentv assert' has no embedder{f' {name!r}' if name else ''}; use 'agentv eval'")


async def _graded(entry: AssertionEntry, context: AssertionContext) -> Grade:
    connections = Connections()
    empty_trial = Trial(Suite("", (), env=context.env), Case("", (), assertions=()), TargetSpec("", "", None), 0.0, 0.0)
    services: Any = StandaloneServices(connections, empty_trial)
    try:
        (score,) = await grade_entries([entry], replace(context, _services=services), connections.clock)
    finally:
        await connections.close()
        kill_all()
    return score.grade


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
    payload: dict[str, Any] = {}
    if payload_file is not None:
        try:
            payload = json.loads(Path(payload_file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{payload_file} is not JSON: {error}") from error
        if not isinstance(payload, dict):
            raise UsageError(f"{payload_file} must hold a JSON object")
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
    with output_to_stderr():
        entry, diagnostics = load_entry({"type": name, **options}, str(Path.cwd()), registries(), dict(context.env))
        redactor = Redactor({*environment_secrets(context.env), *secrets_in(options)})
        if entry is None:
            hinted = (replace(one, hint=_OPTIONS) if one.code == "missing-key" else one for one in diagnostics)
            raise LoadError(tuple(map(redactor.redact_diagnostic, hinted)))
        grade = redactor.redacted(asyncio.run(_graded(entry, context)))
    if grade.error is not None:
        click.echo(f"error[{grade.error.code}]: {grade.error.message}", err=True)
        return ExitStatus.ERRORED
    # `pass`, then the same keys that an assertion file prints when it is run directly
    verdict = ReturnedVerdict(grade.passed, grade.score, grade.checks, grade.reason, grade.details)
    click.echo(json.dumps({"pass": grade.passed, **wire_of(verdict)}, ensure_ascii=False))
    return ExitStatus.PASSED if grade.passed else ExitStatus.FAILED
