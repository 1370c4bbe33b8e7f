"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from agentv.app.authored.convert import TRUSTS_DATA, convert, convert_document, format_of
from agentv.authoring.cases.data_files.rows import HUB
from agentv.authoring.dialects.recognition import (
    AGENTV,
    FORMATS,
    SampleDialect,
    dialect,
    dialects,
    document_dialect,
    named_by,
)
from agentv.authoring.loading.load import refuse_others
from agentv.authoring.source.files import is_of_project
from agentv.cli.lazy import Registered, options_of_extensions
from agentv.cli.printing import print_diagnostics
from agentv.cli.values import Choice
from agentv.errors import Diagnostic, ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.registry.extensions import DIALECTS
from agentv.reports.text import one_line, safe, shown_from
from agentv.user_code.plugins import added

TARGET_FORMATS = ("yaml", "jsonl", "csv", "python")


class DialectOption(click.Option):
    """An option that applies only to files of some dialects.

    Args:
        dialects: names of the dialects.
        files: name of their files in messages, as in "--json is for promptfoo configurations".
    """

    def __init__(self, *declarations: str, dialects: tuple[str, ...], files: str, **settings: Any) -> None:
        super().__init__(declarations, **settings)
        self.dialects = dialects
        self.files = files


class _Source(click.Path):
    """A path, or a URL of a dataset's split on Hugging Face, which is not converted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if str(value).startswith(HUB[0]) else super().convert(value, param, ctx)


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=_Source(exists=True, path_type=Path))
@click.option(
    "--from", "form", type=Registered(DIALECTS, FORMATS), help="Format of SOURCE. Default: recognized by its content."
)
@click.option("--to", type=Choice(TARGET_FORMATS), help="Output format. Default: yaml, unless SOURCE is an eval file.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Output file; for a directory, a new directory.")
@click.option("--in-place", is_flag=True, help="Rewrite the files of an AgentV project where they are.")
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
def command(source: Path | str, **options: Any) -> int:
    """Write a suite in another format, or convert another tool's file to an eval file.

    SOURCE is an eval file, whose cases stay the same while comments are lost; or the directory of an AgentV project,
    whose older spellings become canonical ones while comments are kept; or the exam of a prompt, the evals.json of a
    skill, or a file or directory of another tool that --from names. Datasets of other tools can also be splits on
    Hugging Face: hf://ORG/NAME/SPLIT.

    Never overwrites a file, unless --in-place is given.

    If the suite or its cases are written in Python, this command runs that code, as `eval` does. If functions return
    the tests of another tool's file, it runs them.

    Writes nothing if something that could change a verdict has no equivalent; it is listed.
    """
    if isinstance(source, str):
        source, options["out"] = _downloaded(source, options["out"], options["to"])
    if not source.is_dir() and not source.is_file():
        raise UsageError(f"{source} is a device or a pipe, expected a file", "save its content to a file first")
    form = options.pop("form") or format_of(source)
    found = dialect(form) if form in dialects() else None
    takes_directory = found.reads_directories if isinstance(found, SampleDialect) else form == AGENTV
    if source.is_dir() and not takes_directory:
        raise UsageError(f"{source} is a directory, but --from {form} takes a file")
    _refuse_unused(form, source, options)
    if isinstance(found, SampleDialect):
        return found.convert(source, options)
    if source.is_dir():
        return _convert_project(source, options)
    if found is None:
        return _convert_suite(source, options)
    if options["to"] not in (None, "yaml"):
        raise UsageError(f"a file of {form} is converted to yaml, not to {options['to']}")
    done = convert_document(source, form, options["out"], dict(os.environ), allow_outside=options["allow_outside"])
    print_diagnostics(done.diagnostics)
    print_written(done.path)
    if done.trusts:
        click.echo(f"  {TRUSTS_DATA}", err=True)
    return ExitStatus.PASSED


_OF_DIALECTS = options_of_extensions("convert")
command.params.extend(_OF_DIALECTS)


def _downloaded(written: str, out: Path | None, to: str | None) -> tuple[Path, Path]:
    """Download a dataset's split from Hugging Face, and return its file and the path of the output.

    Raises:
        UsageError: it cannot be downloaded, or has several files.
    """
    from agentv.authoring.cases.data_files.hub_files import missing_hub, read_reference, split_files

    missing = missing_hub()
    if missing is not None:
        raise UsageError(missing.message, missing.hint)
    wanted = read_reference(written)
    (first, *others), _ = split_files(wanted, os.environ.get("HF_TOKEN"))
    if others:
        raise UsageError(f"{written} has {len(others) + 1} files", f"convert one after the other: {first}, …")
    name = f"{wanted.repository.rpartition('/')[2]}-{wanted.split}"
    return Path(first), out or Path(f"{name}.cases.jsonl" if to == "jsonl" else f"{name}.eval.yaml")


def _refuse_unused(form: str, source: Path, options: dict[str, Any]) -> None:
    """Check that the given options apply to the source, and that the output path can be written.

    Raises:
        UsageError: an option does not apply, or the output path is a directory or in none.
    """
    context = click.get_current_context()
    for option in _OF_DIALECTS:
        given = context.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
        if given and isinstance(option, DialectOption) and form not in option.dialects:
            hint = None if source.is_dir() else f"if {source} is one, {named_by(option.dialects)}"
            raise UsageError(f"{option.opts[0]} is for {option.files}", hint)
    if options["in_place"] and not source.is_dir():
        raise UsageError(
            "--in-place is for the directory of an AgentV project", f"for one file: agentv validate --fix {source}"
        )
    if not source.is_dir() and options["out"] is not None and options["out"].is_dir():
        raise UsageError(f"{options['out']} is a directory; --out names the file to write")
    if options["out"] is not None and not options["out"].absolute().parent.is_dir():
        raise UsageError(f"{options['out'].parent} does not exist", "create the directory first")


def _convert_suite(source: Path, options: dict[str, Any]) -> int:
    to = options["to"]
    refuse_others(str(source))
    if is_of_project(source.absolute()):
        home = source.parent.parent
        raise UsageError(f"{source} is converted with its project", f"agentv convert {home} --in-place")
    if to is None:
        hint = f"add --to {', --to '.join(TARGET_FORMATS[:-1])} or --to {TARGET_FORMATS[-1]}; "
        hint += f"to rewrite older spellings: agentv validate --fix {source}"
        if source.suffix in (".yaml", ".yml"):
            documents = ((name, document_dialect(name)) for name in added(DIALECTS))
            hint += "".join(f"; if it is {one.title}, add --from {name}" for name, one in documents if one is not None)
        raise UsageError(f"{source} is an eval file, so --to must name the format to write", hint)
    written = convert(source, to, options["out"], dict(os.environ), allow_outside=options["allow_outside"])
    for path in written:
        print_written(path)
        if to == "csv" and path.suffix == ".yaml" and "trust_data: true" in path.read_text(encoding="utf-8"):
            click.echo(f"  {TRUSTS_DATA}", err=True)
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
        wrong = f"{done.invalid} of {plural(done.count, 'eval file')} invalid" if done.invalid else "a file is invalid"
        click.echo(f"nothing was written: {wrong}; fix the errors above, then convert again", err=True)
        return ExitStatus.WRONG
    if out is not None:
        print_written(out)
    _print_list("left out", done.excluded)
    for path, count in done.files.items():
        click.echo(f"rewrote {plural(count, 'older spelling')} in {safe(path)}", err=True)
    _print_list("dropped, since it has no effect in agentv", tuple(groups_of(done.dropped)))
    _print_list(
        "older spellings that stay, since rewriting them would change a verdict",
        tuple(f"{_place(one, str(done.directory.absolute()))}{one.message}" for one in done.left),
    )
    if not (done.files or done.dropped or done.left):
        click.echo("no older spellings", err=True)
    if done.wrong:
        invalid = f"{done.invalid} of {plural(done.count, 'eval file')} invalid and left as written; "
        click.echo(f"{invalid if done.invalid else ''}fix the errors above, then convert again", err=True)
    return ExitStatus.FAILED if done.wrong or done.left else ExitStatus.PASSED


def _place(found: Diagnostic, here: str) -> str:
    return f"{shown_from(found.span.file, here)}:{found.span.line}: " if found.span is not None else ""


def _print_list(what: str, items: tuple[str, ...]) -> None:
    if items:
        click.echo(f"{what}:", err=True)
    for item in items:
        click.echo(f"  {one_line(safe(item))}", err=True)


def print_written(path: Path) -> None:
    """Print to stderr which file was written."""
    click.echo(f"wrote {safe(str(path))}", err=True)
