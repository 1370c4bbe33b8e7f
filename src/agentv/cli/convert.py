"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentv.cli.printing import print_diagnostics
from agentv.errors import Diagnostic, ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, safe
from agentv.reports.text.paths import shown_from

TARGET_FORMATS = ("yaml", "jsonl", "csv", "python")
SOURCE_FORMATS = ("promptfoo", "agentv", "agent-skills", "deepeval", "openai-evals", "inspect")
_DATASETS = SOURCE_FORMATS[3:]
_MANY = 20_000
"""Cases from which on a YAML file takes noticeably more memory than JSON Lines."""


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--from", "form", type=click.Choice(SOURCE_FORMATS), help="Format of SOURCE. Default: recognized by its content."
)
@click.option(
    "--to", type=click.Choice(TARGET_FORMATS), help="Output format. Default: yaml, unless SOURCE is an eval file."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Output file; for a directory, a new directory.")
@click.option("--in-place", is_flag=True, help="Rewrite the files of an AgentV project where they are.")
@click.option(
    "--assert",
    "checks",
    multiple=True,
    metavar="TYPE",
    help="How to check the answers of a dataset, such as equals. Repeatable.",
)
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
@click.option(
    "--missing-vars",
    type=click.Choice(["error", "empty"]),
    default="error",
    help="For a promptfoo configuration: treat variables that a test does not set as errors or as empty text.",
)
@click.option("--json", "as_json", is_flag=True, help="For a promptfoo configuration: print the findings as JSON.")
def command(source: Path, **options: Any) -> int:
    """Write a suite in another format, or convert another tool's file to an eval file.

    SOURCE is an eval file, whose cases stay the same while comments are lost; or the directory of an AgentV project,
    whose older spellings become canonical ones while comments are kept; or a promptfoo configuration, the
    evals.json of a skill, or a dataset of deepeval, OpenAI evals or Inspect.

    Never overwrites a file, unless --in-place is given.

    If the suite or its cases are written in Python, this command runs that code, as `eval` does.

    A promptfoo configuration keeps its comments. If functions return its tests, this command runs them.

    Exit status: 1 if something that could change a verdict has no equivalent; it is listed.
    """
    from agentv.app.authored.source_format import format_of

    if not source.is_dir() and not source.is_file():
        raise UsageError(f"{source} is a device or a pipe, expected a file", "save its content to a file first")
    form = options.pop("form") or format_of(source)
    _refuse_unused(form, source, options)
    if source.is_dir():
        return _convert_project(source, options)
    if form in _DATASETS:
        return _convert_dataset(source, form, options)
    if form == "promptfoo":
        return _convert_promptfoo(source, options)
    return _convert_skill(source, options) if form == "agent-skills" else _convert_suite(source, options)


def _refuse_unused(form: str, source: Path, options: dict[str, Any]) -> None:
    """Refuse options that mean nothing for this source.

    Raises:
        UsageError: one is given.
    """
    if options["checks"] and form not in _DATASETS:
        named = (
            f"if {source} is one, name its format: --from {', --from '.join(_DATASETS[:-1])} or --from {_DATASETS[-1]}"
        )
        hint = None if source.is_dir() else named
        raise UsageError("--assert is for datasets of deepeval, OpenAI evals and Inspect", hint)
    for given, flag in ((options["missing_vars"] == "empty", "--missing-vars"), (options["as_json"], "--json")):
        if given and form != "promptfoo":
            raise UsageError(f"{flag} is for promptfoo configurations")
    if options["in_place"] and not source.is_dir():
        raise UsageError(
            "--in-place is for the directory of an AgentV project", f"for one file: agentv validate --fix {source}"
        )
    if source.is_dir() and form != "agentv":
        raise UsageError(f"{source} is a directory, but --from {form} takes a file")
    if not source.is_dir() and options["out"] is not None and options["out"].is_dir():
        raise UsageError(f"{options['out']} is a directory; --out names the file to write")
    if options["out"] is not None and not options["out"].absolute().parent.is_dir():
        raise UsageError(f"{options['out'].parent} does not exist", "create the directory first")


def _convert_dataset(source: Path, form: str, options: dict[str, Any]) -> int:
    from agentv.extensions.datasets.checks import CHECKS
    from agentv.extensions.datasets.converting import DatasetRequest, SampleFormat, from_dataset

    if options["to"] not in (None, "yaml", "jsonl"):
        raise UsageError(f"a dataset is converted to yaml or jsonl, not to {options['to']}")
    to: SampleFormat = "jsonl" if options["to"] == "jsonl" else "yaml"
    unknown = next((name for name in options["checks"] if name not in CHECKS), None)
    if unknown is not None:
        raise UsageError(f"--assert does not know '{unknown}'", f"choose from: {', '.join(CHECKS)}")
    request = DatasetRequest(source, form, options["checks"], to, options["out"])
    done = from_dataset(request, dict(os.environ))
    print_diagnostics(done.left)
    for path in done.paths:
        _print_written(path)
    click.echo(f"  {plural(done.count, 'case', ',')}, checked by {one_line(safe(done.checks))}", err=True)
    if to == "yaml" and done.count > _MANY:
        click.echo("  for so many cases, --to jsonl runs in less time and memory", err=True)
    return ExitStatus.FAILED if done.left else ExitStatus.PASSED


def _convert_promptfoo(source: Path, options: dict[str, Any]) -> int:
    from agentv.extensions.promptfoo.converting import from_promptfoo
    from agentv.extensions.promptfoo.findings import report_converted

    allow_outside, to = options["allow_outside"], options["to"]
    if to not in (None, "yaml"):
        raise UsageError(f"a promptfoo configuration is converted to yaml, not to {to}")
    missing_empty = options["missing_vars"] == "empty"
    converted = from_promptfoo(source, options["out"], allow_outside=allow_outside, missing_empty=missing_empty)
    return report_converted(converted, allow_outside=allow_outside, as_json=options["as_json"])


def _convert_skill(source: Path, options: dict[str, Any]) -> int:
    from agentv.app.authored.from_skill import from_skill

    if options["to"] not in (None, "yaml"):
        raise UsageError(f"the evals of a skill are converted to yaml, not to {options['to']}")
    allow_outside = options["allow_outside"]
    _print_written(from_skill(source, options["out"], dict(os.environ), allow_outside=allow_outside))
    return ExitStatus.PASSED


def _convert_suite(source: Path, options: dict[str, Any]) -> int:
    from agentv.app.authored.convert import convert
    from agentv.app.authored.data_trust import SAID
    from agentv.authoring.loading.check import is_of_project
    from agentv.authoring.loading.load import refuse_others

    to = options["to"]
    refuse_others(str(source))
    if is_of_project(source.absolute()):
        home = source.parent.parent
        raise UsageError(f"{source} is converted with its project", f"agentv convert {home} --in-place")
    if to is None:
        hint = f"add --to {', --to '.join(TARGET_FORMATS[:-1])} or --to {TARGET_FORMATS[-1]}; "
        hint += f"to rewrite older spellings: agentv validate --fix {source}"
        if source.suffix in (".yaml", ".yml"):
            hint += "; if it is a promptfoo configuration, add --from promptfoo"
        raise UsageError(f"{source} is an eval file, so --to must name the format to write", hint)
    written = convert(source, to, options["out"], dict(os.environ), allow_outside=options["allow_outside"])
    for path in written:
        _print_written(path)
        if to == "csv" and path.suffix == ".yaml" and "trust_data: true" in path.read_text(encoding="utf-8"):
            click.echo(f"  {SAID}", err=True)
    return ExitStatus.PASSED


def _convert_project(source: Path, options: dict[str, Any]) -> int:
    from agentv.app.authored.from_agentv import convert_project, groups_of

    out, in_place = options["out"], options["in_place"]
    if options["to"] not in (None, "yaml"):
        raise UsageError(f"a directory is converted to yaml, not to {options['to']}")
    if (out is None) == (not in_place):
        message = "a project needs --out or --in-place" if out is None else "--out and --in-place contradict each other"
        raise UsageError(message, "add --out NEW_DIRECTORY, or --in-place to rewrite the files where they are")
    done = convert_project(source, out, dict(os.environ))
    print_diagnostics([*done.wrong, *done.kept])
    if not done.written:
        invalid = (
            f"{done.invalid} of {plural(done.count, 'eval file')} invalid" if done.invalid else "a file is invalid"
        )
        click.echo(f"nothing was written: {invalid}; fix the errors above, then convert again", err=True)
        return ExitStatus.WRONG
    if out is not None:
        _print_written(out)
    _print_list("left out", done.excluded)
    for path, count in done.files.items():
        click.echo(f"rewrote {plural(count, 'older spelling')} in {safe(path)}", err=True)
    _print_list("dropped, since it has no effect in agentv", tuple(groups_of(done.dropped)))
    _print_list(
        "older spellings that stay, since rewriting them would change a verdict", _places(done.left, done.directory)
    )
    if not (done.files or done.dropped or done.left):
        click.echo("no older spellings", err=True)
    if done.wrong:
        invalid = f"{done.invalid} of {plural(done.count, 'eval file')} invalid and left as written; "
        click.echo(f"{invalid if done.invalid else ''}fix the errors above, then convert again", err=True)
    return ExitStatus.FAILED if done.wrong or done.left else ExitStatus.PASSED


def _places(found: tuple[Diagnostic, ...], directory: Path) -> tuple[str, ...]:
    here = str(directory.absolute())
    places = (f"{shown_from(one.span.file, here)}:{one.span.line}: " if one.span is not None else "" for one in found)
    return tuple(f"{place}{one.message}" for place, one in zip(places, found, strict=True))


def _print_list(what: str, items: tuple[str, ...]) -> None:
    if items:
        click.echo(f"{what}:", err=True)
    for item in items:
        click.echo(f"  {one_line(safe(item))}", err=True)


def _print_written(path: Path) -> None:
    click.echo(f"wrote {safe(str(path))}", err=True)
