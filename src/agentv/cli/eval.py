"""`agentv eval`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

from agentv.app.settings import EvalSettings, declared_settings
from agentv.cli.formats import chosen_format, format_options
from agentv.cli.lazy import Option, Registered, Sectioned, options_of_extensions, section
from agentv.cli.values import Choice, files
from agentv.errors import UsageError
from agentv.model.values.values import Json
from agentv.registry.fields import Between
from agentv.registry.settings import SECTIONS, Flag, Setting


class Finite(click.FloatRange):
    """A finite number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number.

        Raises:
            BadParameter: it is not a number, not finite, or out of range.
        """
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def _options_of_settings() -> Iterator[click.Option]:
    """Yield an option for each setting that has a flag."""
    for name, setting in declared_settings().items():
        flag = setting.marked(Flag)
        if flag is None:
            continue
        kind: dict[str, Any] = {"type": _type_of(setting, flag)}
        if setting.several:
            kind = {"multiple": True}
        elif setting.kind is bool:
            kind = {"default": None} if "/" in flag.spelled else {"is_flag": True}
        elif flag.bare is not None:
            kind = {"is_flag": False, "flag_value": flag.bare}
        elif not setting.optional:
            kind["default"] = setting.default
        kind |= {"help": flag.help, "metavar": flag.metavar, "section": flag.section or setting.section}
        yield Option([*flag.spelled.split(), flag.parameter or name], **kind)


def _type_of(setting: Setting, flag: Flag) -> click.ParamType[Any] | None:
    """Return the type that converts the option's value; None if the value is any text."""
    between = setting.marked(Between) or Between()
    if flag.table is not None:
        return Registered(flag.table, [setting.default])
    if flag.file:
        return click.Path(exists=True, dir_okay=False)
    if get_origin(setting.kind) is Literal:
        return Choice(get_args(setting.kind))
    if setting.kind is float:
        return Finite(between.low, between.high)
    if setting.kind is int:
        return click.INT if between.low is None else click.IntRange(int(between.low))
    return None


_output = section("Output")
_checks = section("Checks and debugging")


@click.command(
    "eval", cls=Sectioned, epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}' --workers 20"
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@_output("-v", "--verbose", is_flag=True, help="Print every trial as it finishes.")
@_output("--list", "lists", is_flag=True, help="List the trials without running them.")
@_output("-q", "--quiet", is_flag=True, help="Print only totals and exams that did not pass.")
@format_options("Print the results to stdout as one JSON object. Same as --format json.", "Output")
@_output("--no-progress", is_flag=True, help="Do not show progress.")
@_checks("--watch", "watches", is_flag=True, help="Run, and after every save run again the cases that it changes.")
@_checks("--watched", metavar="FILE", hidden=True)
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Run the cases of eval files and grade the answers.

    Without a PATH, runs the files that match `eval_patterns` in .agentv/config.yaml, or else those in evals/.

    Exit status: 0 all cases passed; 1 a case or a gate failed, or a case was not checked; 2 a file or the command is
    wrong and nothing ran; 3 a trial errored or did not run; 130 interrupted.
    """
    if not paths:
        from agentv.cli.printing import paths_of_project

        paths = paths_of_project(allow_outside=bool(options["allow_outside"]))
    return run(paths, options)


_OF_EXTENSIONS = options_of_extensions("eval")
command.params[1:] = sorted(
    (*_options_of_settings(), *command.params[1:], *_OF_EXTENSIONS),
    key=lambda one: SECTIONS.index(found) if (found := getattr(one, "section", "")) in SECTIONS else len(SECTIONS),
)

BESIDE_RUN_OPTIONS = {one.name for one in _OF_EXTENSIONS} - set(EvalSettings.__struct_fields__)
"""Options of extensions that are not settings of the run; they are passed to `BESIDE_RUNS`."""


def run(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """Run eval files with the options of `agentv eval`, and return the exit status.

    Args:
        paths: paths of the eval files or directories.
        options: values by the names of the command's parameters.
    """
    from agentv.cli.progress import ProgressOptions, run_and_report

    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    shown = {name: options.pop(name) for name in ("quiet", "verbose", "no_progress")}
    shown["no_progress"] |= options.get("debug", False)  # progress would be drawn over the debugger's prompt
    shown_as = ProgressOptions(form, **shown)
    out, exports = split_outs(options.pop("outs"))
    variables = dict(_parse_variable(text) for text in options.pop("variables", ()))
    if options.pop("watches", False):
        from agentv.cli.watching import watch

        return watch(paths, {**shown, **options, "format_name": form}, exports)
    lists = options.pop("lists")
    beside = {name: options.pop(name) for name in BESIDE_RUN_OPTIONS & options.keys()}
    filters = options.pop("filters")
    options["filter"] = None if not filters else filters[0] if len(filters) == 1 else filters
    settings = EvalSettings(paths=paths, out=out, exports=exports, variables=variables, **options)
    if lists:
        from agentv.cli.listing import show_listing

        if form not in ("text", "json"):
            raise UsageError(f"--list prints text or json, not {form}")
        return show_listing(settings, as_json=form == "json", quiet=shown_as.quiet)
    return run_and_report(settings, shown_as, beside)


def _parse_variable(text: str) -> tuple[str, Json]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--var takes NAME=VALUE, found '{text}'")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the value of --var {name} is not UTF-8") from error
    return name.strip(), value


def split_outs(outs: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Split the values of `--out` into the run directory, which has no known suffix, and the exports.

    Raises:
        UsageError: there are two directories, or a directory looks like a file with an unknown suffix.
    """
    if not outs:
        return None, ()
    if not any(Path(out).suffix for out in outs):
        directories, exports = [*outs], list[str]()
    else:
        from agentv.app.exports import is_export, known_suffixes  # imports the readers of stored runs

        exports = [out for out in dict.fromkeys(outs) if is_export(out)]
        directories = [out for out in outs if out not in exports]
        for directory in directories:
            # a directory `report.htm` or `report.pdf` is probably a mistake; `v1.2` or `out.d` is not
            suffix = Path(directory).suffix.lower()
            if re.fullmatch(r"\.[a-z]{3,}", suffix) and not directory.endswith("/") and not Path(directory).is_dir():
                from agentv.authoring.source.nearest import did_you_mean

                known = did_you_mean(suffix, known_suffixes()) or f"there are {', '.join(known_suffixes())}."
                hint = f"{known} For a results directory with this name, end it with '/'"
                raise UsageError(f"--out {directory}: no export has the suffix '{suffix}'", hint)
    if len(directories) > 1:
        raise UsageError(f"two results directories given: {directories[0]} and {directories[1]}")
    return (directories[0] if directories else None), tuple(exports)
