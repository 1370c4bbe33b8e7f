"""`agentv prepare`, `grade` and `check`: commands that use cases without calling an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from agentv.app.settings import EvalSettings
from agentv.cli.formats import chosen_format, format_options
from agentv.cli.printing import print_diagnostics
from agentv.cli.values import Choice, files
from agentv.errors import ExitStatus
from agentv.model.values.formatting import plural
from agentv.reports.text import one_line

if TYPE_CHECKING:
    from agentv.extensions.agents.commands.checking import CaseProblem, CheckReport


@click.command("prepare", epilog="Example: agentv prepare fix.eval.yaml --test-id negative --out negative")
@click.argument("path", metavar="FILE", shell_complete=files)
@click.option("--test-id", required=True, metavar="ID", help="Case to prepare.")
@click.option("--out", required=True, metavar="DIR", help="Directory to make.")
@click.option("--variant", metavar="NAME", help="Variant to prepare.")
@click.option(
    "--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines setup and hooks to the workspace."
)
def prepare(*, path: str, test_id: str, out: str, variant: str | None, sandbox: str | None) -> int:
    """Prepare a case for a person or another program to work on: its prompt and its workspace.

    Writes DIR/prompt.md, DIR/workspace and DIR/manifest.json. Hidden files, expected outputs and assertions are not
    in it. Grade the work with `agentv grade`.

    Exit status: 2 a file or the command is wrong; 3 the workspace could not be made.
    """
    from agentv.extensions.agents.commands.prepared_work import PROMPT, WORKSPACE, prepare_case

    settings = EvalSettings(
        paths=(path,),
        variants=(variant,) if variant is not None else (),
        sandbox=sandbox,  # type: ignore[arg-type]  # one of click's choices
    )
    made = prepare_case(settings, test_id, out)
    print_diagnostics(made.diagnostics)
    click.echo(f"prompt: {one_line(str(made.directory / PROMPT))}")
    if made.has_workspace:
        click.echo(f"workspace: {one_line(str(made.directory / WORKSPACE))}")
    click.echo(f"grade: agentv grade {one_line(path)} --test-id {one_line(test_id)} --prepared {one_line(out)}")
    return ExitStatus.PASSED


@click.command("grade", epilog="Example: agentv grade fix.eval.yaml --test-id negative --prepared negative")
@click.argument("path", metavar="FILE", shell_complete=files)
@click.option("--test-id", required=True, metavar="ID", help="Case to grade.")
@click.option("--prepared", required=True, metavar="DIR", help="Directory that `agentv prepare` made.")
@click.option("--response", metavar="FILE", help="File with the answer. Default: the last message of --trace.")
@click.option("--trace", metavar="FILE", help="Trace of the work.")
@click.option("--judge", metavar="TARGET", help="Model that grades rubrics.")
@click.option("-o", "--out", metavar="DIR", help="Results directory.")
@click.option("--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines commands to the workspace.")
@format_options("Print the results to stdout as one JSON object. Same as --format json.")
def grade(path: str, test_id: str, prepared: str, response: str | None, trace: str | None, **options: Any) -> int:
    """Grade work that a person or another program did in a prepared directory.

    The workspace is compared with a new one, so that only the work in DIR affects the grade. Without an answer,
    assertions on the answer are errored; those on files, changes and commands are graded.

    Exit status: as for `agentv eval`.
    """
    from agentv.cli.progress import ProgressOptions, run_and_report
    from agentv.extensions.agents.commands.prepared_work import work_to_grade

    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    settings = EvalSettings(paths=(path,), **options)
    settings = work_to_grade(settings, prepared, test_id, response, trace)
    return run_and_report(settings, ProgressOptions(form, quiet=False, verbose=False, no_progress=True))


@click.command("check", epilog="Example: agentv check evals/ --oracle")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@click.option("--oracle", is_flag=True, help="Also require that the solution of each case passes.")
@click.option("--filter", metavar="GLOB", help="Check only cases whose id matches.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Check only cases with this tag. Repeatable.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Check only this variant. Repeatable.")
@click.option("--judge", metavar="TARGET", help="Model that grades rubrics.")
@click.option("-j", "--workers", type=click.IntRange(1), metavar="N", help="Number of trials to run concurrently.")
@click.option("--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines agents to their workspaces.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def check(paths: tuple[str, ...], *, oracle: bool, as_json: bool, **options: Any) -> int:
    """Check that cases fail an agent that does nothing, and that they are graded the same twice.

    The agent answers "Done." and leaves its workspace as it is; it also tries to read the hidden files of each case.
    With --oracle the `solution` of each case (a patch, files or commands), or its expected output where the case has no
    workspace, must pass. Targets are not called. Judges are, for cases that use them.

    Exit status: 0 all cases are sound; 1 some are not, or have no solution; 2 a file or the command is wrong; 3 a case
    could not be graded.
    """
    from agentv.extensions.agents.commands.checking import check_cases

    settings = EvalSettings(paths=paths, **options)
    found = check_cases(settings, oracle=oracle)
    print_diagnostics(found.diagnostics)
    click.echo(check_json(found) if as_json else render_check(found))
    return found.status


_MOST_DETAILS = 10
_MOST_NAMES = 20


def render_check(found: CheckReport) -> str:
    """Return the problems, then a line with what was checked."""
    lines = [*map(one_line, found.notes), *_problems(found.problems)]
    names = found.without_solution
    if names:
        shown = ", ".join((*names[:_MOST_NAMES], "…")[: len(names)])
        lines.append(f"{plural(len(names), 'case')} without 'solution' or 'expected_output': {one_line(shown)}")
    if found.interrupted:
        lines.append(f"interrupted, so that not all of {plural(found.cases, 'case')} are checked")
    else:
        tried = f", {plural(found.solved, 'solution')} tried" if found.solved else ""
        lines.append(f"{plural(found.cases, 'case')} checked{tried}: {found.sound} without a problem")
    return "\n".join(lines)


def _problems(problems: Sequence[CaseProblem]) -> Iterator[str]:
    several = len({one.suite for one in problems}) > 1
    for one in problems:
        name = f"{one.suite} › {one.name}" if several else one.name
        yield f"{one_line(name)}: {one_line(one.message)}"
        for line in one.detail[:_MOST_DETAILS]:
            yield f"  {one_line(line)}"
        if len(one.detail) > _MOST_DETAILS:
            yield f"  and {len(one.detail) - _MOST_DETAILS} more"


def check_json(found: CheckReport) -> str:
    """Return the report as one JSON object."""
    problems = [
        {
            "suite": one.suite,
            "test_id": one.case,
            "variant": one.variant,
            "problem": one.problem,
            "message": one.message,
            "detail": list(one.detail),
        }
        for one in found.problems
    ]
    facts = {
        "cases": found.cases,
        "solutions": found.solved,
        "problems": problems,
        "without_solution": list(found.without_solution),
        "interrupted": found.interrupted,
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)
