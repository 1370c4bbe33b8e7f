"""`agentv eval`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import click

from agentv.app.settings import LOCAL, EvalSettings, outs_of
from agentv.cli.completion.values import files
from agentv.cli.lazy import Registered, options_of_extensions
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


@click.command("eval", epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}' --workers 20")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@click.option("-t", "--target", "targets", multiple=True, metavar="TARGET", help="Target to evaluate.")
@click.option("--judge", metavar="TARGET", help="Model that grades rubrics.")
@click.option(
    "-o",
    "--out",
    "outs",
    multiple=True,
    metavar="DIR|FILE",
    help="Results directory, or a report FILE: .jsonl, .json, .csv, .xml (JUnit), .html or .md. Repeatable.",
)
@click.option(
    "--tests-from",
    metavar="PATH",
    help="Run the cases of a data file, a directory of transcripts or hf://… instead of those of the eval files.",
)
@click.option("--filter", "filters", multiple=True, metavar="GLOB", help="Run only cases whose id matches. Repeatable.")
@click.option(
    "--last-failed",
    "--lf",
    "last_failed",
    is_flag=True,
    help="Run only the cases that did not pass when they last ran.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Run only cases with this tag. Repeatable.")
@click.option(
    "--exclude-tag", "exclude_tags", multiple=True, metavar="TAG", help="Skip cases with this tag. Repeatable."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Run at most N cases of each suite.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Run N cases, drawn at random from all suites.")
@click.option("--seed", type=int, metavar="S", help="Random seed for --sample and --shuffle.")
@click.option(
    "--prompt", "prompts", multiple=True, metavar="NAME", help="Run only this prompt, by its id or label. Repeatable."
)
@click.option("--shuffle", is_flag=True, help="Run the trials in a random order, which a resume repeats.")
@click.option("--shard", metavar="I/N", help="Run the I-th of N parts of the cases; join them with 'results merge'.")
@click.option(
    "--var",
    "variables",
    multiple=True,
    metavar="K=V",
    help="Set a variable; overrides the value in every case. Repeatable.",
)
@click.option(
    "--env-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read this file instead of the project's .env files.",
)
@click.option("-j", "--workers", type=click.IntRange(1), metavar="N", help="Number of trials to run concurrently.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Number of samples for each case.")
@click.option(
    "--until",
    type=click.Choice(("decided",)),
    help="Stop sampling each case, or with --against drawing cases, once the outcome is decided.",
)
@click.option(
    "--alpha", type=Finite(0, 0.5, min_open=True), metavar="X", help="Error rate for --until decided (default 0.05)."
)
@click.option(
    "--against", metavar="RUN", help="Draw cases until the comparison with RUN is decided. Requires --until decided."
)
@click.option(
    "--margin",
    type=Finite(0, 1, min_open=True, max_open=True),
    metavar="D",
    help="Largest loss of the pass rate that --against ignores.",
)
@click.option("--threshold", type=Finite(0, 1), metavar="X", help="Minimum score for every case to pass.")
@click.option("--cluster", metavar="KEY", help="Metadata key or variable; cases with the same value form a cluster.")
@click.option(
    "--timeout", "timeout_s", type=Finite(0, min_open=True), metavar="S", help="Time limit for one attempt, in seconds."
)
@click.option("--max-errors", type=click.IntRange(1), metavar="N", help="Stop after N errored trials.")
@click.option("--budget-usd", type=Finite(0, min_open=True), metavar="USD", help="Stop before spending more than this.")
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="Stop before using more tokens than this.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first failed or errored trial.")
@click.option("--resume", is_flag=False, flag_value="last", metavar="RUN", help="Resume a run (default: the last).")
@click.option(
    "--rerun", type=click.Choice(("failed", "errored")), help="Run the failed or errored trials of the run again."
)
@click.option(
    "--regrade",
    is_flag=False,
    flag_value="last",
    metavar="RUN",
    help="Grade the stored answers of a run again without calling its targets.",
)
@click.option("--cache/--no-cache", default=None, help="Reuse answers of earlier runs, and store new ones.")
@click.option("--record", metavar="FILE", help="Record answers of targets, judges and embedders to a cassette.")
@click.option("--record-code", is_flag=True, help="Also record grades of scripts, webhooks and custom assertions.")
@click.option("--replay", metavar="FILE", help="Replay answers from a cassette; make no calls.")
@click.option(
    "--replay-mode",
    type=click.Choice(("strict", "new")),
    default="strict",
    help="If the cassette lacks an answer: fail (strict), or call and record it (new).",
)
@click.option(
    "--executor",
    type=Registered(EXECUTORS, [LOCAL]),
    default=LOCAL,
    help="Run trials on this machine or on a Ray cluster.",
)
@click.option(
    "--debug",
    is_flag=True,
    help="Run one trial at a time, without time limits, with Python code on the terminal: breakpoint() works.",
)
@click.option("--allow-unchecked", is_flag=True, help="Exit with 0 even if cases were shown and not checked.")
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
@click.option(
    "--trust-data", is_flag=True, help="Allow rows of data files to run code and to read environment variables."
)
@click.option("--list", "lists", is_flag=True, help="List the trials without running them.")
@format_options("Print the results to stdout as one JSON object. Same as --format json.")
@click.option("-q", "--quiet", is_flag=True, help="Print only totals and exams that did not pass.")
@click.option("-v", "--verbose", is_flag=True, help="Print every trial as it finishes.")
@click.option("--no-progress", is_flag=True, help="Do not show progress.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--watch", "watches", is_flag=True, help="Run, and after every save run again the cases that it changes.")
@click.option("--watched", metavar="FILE", hidden=True)
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
