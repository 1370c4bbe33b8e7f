"""`agentv eval`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import click

from agentv.app.settings import LOCAL, EvalSettings, outs_of
from agentv.cli.completion.values import files
from agentv.cli.lazy import Registered, Sectioned, options_of_extensions, section
from agentv.cli.options.formats import chosen_format, format_options
from agentv.cli.running.progress import ProgressOptions, follow
from agentv.errors import UsageError
from agentv.model.values.values import Json
from agentv.registry.extensions import EXECUTORS


class Finite(click.FloatRange):
    """A number within bounds; `nan` and `inf` are numbers to Python and none to a person."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number.

        Raises:
            BadParameter: it is none, or not finite.
        """
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


_most = section("Most used")
_output = section("Output")
_cases = section("Cases")
_input = section("Input")
_limits = section("Limits")
_stats = section("Repeats and statistics")
_earlier = section("Earlier answers")
_checks = section("Checks and debugging")


@click.command(
    "eval", cls=Sectioned, epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}' --workers 20"
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@_most("-t", "--target", "targets", multiple=True, metavar="TARGET", help="Target to evaluate.")
@_most("--judge", metavar="TARGET", help="Model that grades rubrics.")
@_most(
    "-o",
    "--out",
    "outs",
    multiple=True,
    metavar="DIR|FILE",
    help="Results directory, or a report FILE: .jsonl, .json, .csv, .xml (JUnit), .html or .md. Repeatable.",
)
@_most("--filter", "filters", multiple=True, metavar="GLOB", help="Run only cases whose id matches. Repeatable.")
@_most(
    "--last-failed",
    "--lf",
    "last_failed",
    is_flag=True,
    help="Run only the cases that did not pass when they last ran.",
)
@_most("--limit", type=click.IntRange(1), metavar="N", help="Run at most N cases of each suite.")
@_most("--repeat", type=click.IntRange(1), metavar="N", help="Number of samples for each case.")
@_most("-j", "--workers", type=click.IntRange(1), metavar="N", help="Number of trials to run concurrently.")
@_output("-v", "--verbose", is_flag=True, help="Print every trial as it finishes.")
@_output("--list", "lists", is_flag=True, help="List the trials without running them.")
@_output("-q", "--quiet", is_flag=True, help="Print only totals and exams that did not pass.")
@format_options("Print the results to stdout as one JSON object. Same as --format json.", "Output")
@_output("--no-progress", is_flag=True, help="Do not show progress.")
@_cases("--tag", "tags", multiple=True, metavar="TAG", help="Run only cases with this tag. Repeatable.")
@_cases("--exclude-tag", "exclude_tags", multiple=True, metavar="TAG", help="Skip cases with this tag. Repeatable.")
@_cases("--sample", type=click.IntRange(1), metavar="N", help="Run N cases, drawn at random from all suites.")
@_cases(
    "--prompt", "prompts", multiple=True, metavar="NAME", help="Run only this prompt, by its id or label. Repeatable."
)
@_cases("--seed", type=int, metavar="S", help="Random seed for --sample and --shuffle.")
@_cases("--shuffle", is_flag=True, help="Run the trials in a random order, which a resume repeats.")
@_cases("--shard", metavar="I/N", help="Run the I-th of N parts of the cases; join them with 'results merge'.")
@_input(
    "--tests-from",
    metavar="PATH",
    help="Run the cases of a data file, a directory of transcripts or hf://… instead of those of the eval files.",
)
@_input(
    "--var",
    "variables",
    multiple=True,
    metavar="K=V",
    help="Set a variable; overrides the value in every case. Repeatable.",
)
@_input(
    "--env-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read this file instead of the project's .env files.",
)
@_input("--allow-outside", is_flag=True, help="Allow files outside the repository.")
@_input("--trust-data", is_flag=True, help="Allow rows of data files to run code and to read environment variables.")
@_limits(
    "--timeout", "timeout_s", type=Finite(0, min_open=True), metavar="S", help="Time limit for one attempt, in seconds."
)
@_limits("--budget-usd", type=Finite(0, min_open=True), metavar="USD", help="Stop before spending more than this.")
@_limits("--budget-tokens", type=click.IntRange(1), metavar="N", help="Stop before using more tokens than this.")
@_limits("--max-errors", type=click.IntRange(1), metavar="N", help="Stop after N errored trials.")
@_limits("--fail-fast", is_flag=True, help="Stop after the first failed or errored trial.")
@_stats("--threshold", type=Finite(0, 1), metavar="X", help="Minimum score for every case to pass.")
@_stats(
    "--until",
    type=click.Choice(("decided",)),
    help="Stop sampling each case, or with --against drawing cases, once the outcome is decided.",
)
@_stats(
    "--alpha", type=Finite(0, 0.5, min_open=True), metavar="X", help="Error rate for --until decided (default 0.05)."
)
@_stats(
    "--against", metavar="RUN", help="Draw cases until the comparison with RUN is decided. Requires --until decided."
)
@_stats(
    "--margin",
    type=Finite(0, 1, min_open=True, max_open=True),
    metavar="D",
    help="Largest loss of the pass rate that --against ignores.",
)
@_stats("--cluster", metavar="KEY", help="Metadata key or variable; cases with the same value form a cluster.")
@_earlier("--resume", is_flag=False, flag_value="last", metavar="RUN", help="Resume a run (default: the last).")
@_earlier(
    "--rerun", type=click.Choice(("failed", "errored")), help="Run the failed or errored trials of the run again."
)
@_earlier(
    "--regrade",
    is_flag=False,
    flag_value="last",
    metavar="RUN",
    help="Grade the stored answers of a run again without calling its targets.",
)
@_earlier("--cache/--no-cache", default=None, help="Reuse answers of earlier runs, and store new ones.")
@_earlier("--record", metavar="FILE", help="Record answers of targets, judges and embedders to a cassette.")
@_earlier("--record-code", is_flag=True, help="Also record grades of scripts, webhooks and custom assertions.")
@_earlier("--replay", metavar="FILE", help="Replay answers from a cassette; make no calls.")
@_earlier(
    "--replay-mode",
    type=click.Choice(("strict", "new")),
    default="strict",
    help="If the cassette lacks an answer: fail (strict), or call and record it (new).",
)
@_checks("--strict", is_flag=True, help="Treat warnings as errors.")
@_checks("--allow-unchecked", is_flag=True, help="Exit with 0 even if cases were shown and not checked.")
@_checks(
    "--executor",
    type=Registered(EXECUTORS, [LOCAL]),
    default=LOCAL,
    help="Run trials on this machine or on a Ray cluster.",
)
@_checks(
    "--debug",
    is_flag=True,
    help="Run one trial at a time, without time limits, with Python code on the terminal: breakpoint() works.",
)
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
command.params[-2:-2] = _OF_EXTENSIONS

BESIDE = {one.name for one in _OF_EXTENSIONS} - {one.name for one in fields(EvalSettings)}
"""Options of extensions that are no settings of the run: they are for what goes on beside it."""


def run(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """Run eval files with the options of `agentv eval`; options that are not given have their defaults.

    Args:
        paths: of the command line.
        options: by the names of the command's parameters.
    """
    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    shown = {name: options.pop(name) for name in ("quiet", "verbose", "no_progress")}
    shown["no_progress"] |= options.get("debug", False)  # which would be drawn over the debugger's prompt
    shown_as = ProgressOptions(form, **shown)
    out, exports = outs_of(options.pop("outs"))
    variables = dict(_variable(text) for text in options.pop("variables", ()))
    if options.pop("watches", False):
        from agentv.cli.running.watching import watch

        return watch(paths, {**shown, **options, "format_name": form}, exports)
    lists = options.pop("lists")
    beside = {name: options.pop(name) for name in BESIDE & options.keys()}
    filters = options.pop("filters")
    options["filter"] = None if not filters else filters[0] if len(filters) == 1 else filters
    settings = EvalSettings(paths=paths, out=out, exports=exports, variables=variables, **options)
    if lists:
        from agentv.cli.listing import show_listing

        if form not in ("text", "json"):
            raise UsageError(f"--list prints text or json, not {form}")
        return show_listing(settings, as_json=form == "json", quiet=shown_as.quiet)
    return follow(settings, shown_as, beside)


def _variable(text: str) -> tuple[str, Json]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--var takes NAME=VALUE, found '{text}'")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the value of --var {name} is not UTF-8") from error
    return name.strip(), value
