"""`agentv prompt …`, which is also `eva …`: a library of prompts, their exams, and the gates (SPEC section 11)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agentv.app.prompt_library import Library, PromptFormat, exams_of, make_prompt
from agentv.cli.eval import command as eval_of_files
from agentv.cli.eval import run
from agentv.cli.formats import Format, chosen_format, format_options, print_as
from agentv.cli.lazy import LazyCommands
from agentv.cli.printing import print_created, print_diagnostics, print_json, width_and_color
from agentv.cli.values import Choice
from agentv.errors import Diagnostic, ExitStatus
from agentv.model.suite.exam import PromptStatus
from agentv.model.suite.library import Promotion
from agentv.model.values.formatting import plural
from agentv.reports.text import one_line, safe, shown_from

COMMANDS = ("list", "show", "init", "eval", "render", "diff", "doctor", "check", "promote", "demote")


@click.group(
    "prompt",
    cls=LazyCommands,
    places={name: f"agentv.cli.prompt:{name}_command" for name in COMMANDS},
    epilog="Example: agentv prompt eval diff-surgeon",
)
def group() -> None:
    """Run exams of prompts, and promote prompts that pass: draft, tested, ready.

    A prompt is a directory below `prompts/` with `prompt.xml` (or .md, .txt), `meta.yaml` and an exam, `eval.yml`. `eva
    COMMAND` is short for `agentv prompt COMMAND`.
    """


@click.command("list", epilog="Example: agentv prompt list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def list_command(*, as_json: bool) -> int:
    """List the prompts of the library with their status, their last exam, and what changed since.

    `(edited)` after a status means that the prompt has changed since it got that status.
    """
    from agentv.app.prompt_exams import listed
    from agentv.reports.prompts import listed_data, render_list

    library = Library.here()
    prompts = list(map(listed, library.all()))
    if as_json:
        print_json([listed_data(one, library.working) for one in prompts])
    else:
        width, color = width_and_color()
        click.echo(render_list(prompts, width=width, color=color), color=color)
    return ExitStatus.PASSED


@click.command("show", epilog="Example: agentv prompt show diff-surgeon")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def show_command(name: str, *, as_json: bool) -> int:
    """Show one prompt: its description, its exam, every recorded attempt, and whether it may be promoted.

    ID is the id of the prompt or a path to its directory.
    """
    from agentv.app.prompt_exams import Examiner, shown_prompt
    from agentv.reports.prompts import prompt_data, render_prompt

    library = Library.here()
    shown = shown_prompt(Examiner(library).examine(library.one(name)))
    if as_json:
        print_json(prompt_data(shown, library.working))
    else:
        width, color = width_and_color()
        click.echo(render_prompt(shown, here=library.working, width=min(width, 100), color=color), color=color)
    return ExitStatus.PASSED


@click.command("init", epilog="Example: agentv prompt init diff-surgeon --format md")
@click.argument("name", metavar="ID")
@click.option(
    "--format",
    "form",
    type=Choice(("xml", "md", "txt")),
    default="xml",
    help="Format of the prompt file (default xml).",
)
def init_command(name: str, form: PromptFormat) -> int:
    """Create a prompt with its description, an exam, and the inputs of a first case.

    Writes to `prompts_dir` of .agentv/config.yaml, or else to the closest directory `prompts`. If neither exists,
    creates `prompts` in the root of the repository. Never changes existing files.
    """
    here = str(Path.cwd())
    print_created(make_prompt(name, form, Library.here()), lambda path: one_line(shown_from(str(path), here)))
    click.echo(f"\nWrite the prompt and its exam, then: agentv prompt eval {name}", err=True)
    return ExitStatus.PASSED


@click.command("render", epilog="Example: agentv prompt render diff-surgeon --case small-file-happy-path")
@click.argument("name", metavar="ID")
@click.option("--case", "case_id", metavar="NAME", help="Case to render. Required if the exam has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout: the messages with their roles.")
def render_command(name: str, *, case_id: str | None, as_json: bool) -> int:
    """Print what the model would see for a case. Makes no calls.

    Prints the text of a single user message, or several messages labelled with their roles.
    """
    from agentv.app.prompt_exams import Examiner, render
    from agentv.model.values.message import prompt_text

    library = Library.here()
    rendered = render(library.one(name), case_id, Examiner(library))
    if as_json:
        messages = [message.as_json() for message in rendered.messages]
        document = {"prompt": rendered.prompt, "case": rendered.case, "messages": messages}
        print_json(document)
    else:
        text = prompt_text(rendered.messages)
        click.echo(safe(text) if sys.stdout.isatty() else text)
    return ExitStatus.PASSED


@click.command("diff", epilog="Example: agentv prompt diff diff-surgeon")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout, with both versions of every changed text.")
def diff_command(name: str, *, as_json: bool) -> int:
    """Show what changed since the last recorded exam: prompt, description, exam and inputs.

    Examined texts are stored in .agentv/exams/, which is not shared. If an exam ran elsewhere, only the names of the
    changed files are known.
    """
    from agentv.app.prompt_exams import Examiner, compare
    from agentv.reports.prompts import compared_with, differences_data, render_differences

    library = Library.here()
    found = compare(Examiner(library).examine(library.one(name)))
    if as_json:
        print_json(differences_data(found))
    elif found.exam_row is None:
        click.echo(f"'{one_line(found.prompt)}' has no recorded exam with the text that it examined", err=True)
    elif not found.differences:
        click.echo(f"nothing changed since {compared_with(found)}", err=True)
    else:
        _, color = width_and_color()
        click.echo(render_differences(found, color=color), color=color)
    return ExitStatus.PASSED


@click.command("doctor", epilog="Example: agentv prompt doctor diff-surgeon")
@click.argument("names", nargs=-1, metavar="[ID]...")
@format_options("Print findings to stdout as JSON. Same as --format json.")
def doctor_command(names: tuple[str, ...], **formats: Any) -> int:
    """Check prompts and report every mistake with its position. Without an ID, check the whole library.

    Reads prompts, exams, inputs and logs; makes no calls. A comment `# agentv: ignore[CODE]` ignores a warning.

    Exit status: 1 if there are findings.
    """
    from agentv.app.prompt_exams import findings

    form = chosen_format(formats["format_name"], as_json=formats["as_json"])
    library = Library.here()
    prompts = library.named(names) if names else library.all()
    return print_findings(list(findings(prompts, library)), len(prompts), form)


def print_findings(found: Sequence[Diagnostic], prompts: int, form: Format) -> int:
    """Print findings and return the exit status.

    Args:
        found: findings, in any order.
        prompts: number of prompts that were checked.
        form: output format.
    """
    print_as(found, form)
    if form == "text" and not found:
        click.echo(f"{plural(prompts, 'prompt')}: no problems found", err=True)
    return ExitStatus.FAILED if found else ExitStatus.PASSED


@click.command("check", epilog="Example: agentv prompt check --require ready --format github")
@click.option("--require", type=Choice(("tested", "ready")), help="Require every prompt to have at least this status.")
@format_options("Print findings to stdout as JSON. Same as --format json.")
def check_command(*, require: PromptStatus | None, **formats: Any) -> int:
    """Check the whole library in CI: fail if doctor has findings or a status lacks its evidence.

    Makes no calls. Exit status: 1 if anything is wrong.
    """
    from agentv.app.prompt_exams import below, findings

    form = chosen_format(formats["format_name"], as_json=formats["as_json"])
    library = Library.here()
    prompts = library.all()
    found = list(findings(prompts, library))
    if require is not None:
        found += below(prompts, require)
    return print_findings(found, len(prompts), form)


def _print_promotions(done: Sequence[Promotion], *, as_json: bool) -> None:
    """Print promotions or demotions to stderr, or as JSON to stdout."""
    from agentv.reports.prompts import promotion_lines, promotions_data

    here = str(Path.cwd())
    if as_json:
        print_json(promotions_data(done, here=here))
        return
    for one in done:
        for line in promotion_lines(one, here=here):
            click.echo(line, err=True)


@click.command("promote", epilog="Example: agentv prompt promote diff-surgeon --to ready")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("tested", "ready")), help="Target status (default: the next one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--explain", is_flag=True, help="List what the evidence covers: in the latest exam, and now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def promote_command(
    names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, explain: bool, as_json: bool
) -> int:
    """Promote prompts from draft to tested to ready if the evidence is on record; otherwise report what is missing.

    To tested: doctor finds nothing, and the whole exam ran on the current text. To ready: the last exam on the current
    text was complete and passed. Writes the status to meta.yaml and changes nothing else there.

    A prompt that already has the status, or a later one, keeps it. Exit status: 1 if a promotion is refused.
    """
    from agentv.app.prompt_exams import Examiner, covered_by, promote

    library = Library.here()
    examiner = Examiner(library)
    done = []
    for prompt in library.named(names):
        examined = examiner.examine(prompt)
        one = promote(examined, to, dry_run=dry_run)
        if not one.gate.open:
            own = examined.evidence_problems if one.gate.to is None else ()
            print_diagnostics((*examined.diagnostics, *own))
        done.append(replace(one, evidence=covered_by(examined)) if explain else one)
    _print_promotions(done, as_json=as_json)
    return ExitStatus.FAILED if any(one.refused for one in done) else ExitStatus.PASSED


@click.command("demote", epilog="Example: agentv prompt demote diff-surgeon --to draft")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("draft", "tested")), help="Target status (default: the previous one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def demote_command(names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, as_json: bool) -> int:
    """Demote prompts from ready to tested to draft. Needs no evidence and keeps the log."""
    from agentv.app.prompt_exams import demote

    _print_promotions([demote(one, to, dry_run=dry_run) for one in Library.here().named(names)], as_json=as_json)
    return ExitStatus.PASSED


@click.command("eval", epilog="Example: agentv prompt eval diff-surgeon --filter 'small-*'")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Run the exam of every prompt in the library.")
def eval_command(names: tuple[str, ...], *, everything: bool, **options: Any) -> int:
    """Run the exams of prompts and record every attempt in the prompt's .eval.jsonl.

    ID is the id of a prompt, or a path to its directory or its exam: `agentv prompt eval ID` is `agentv eval
    prompts/ID/eval.yml`. An attempt that runs only part of an exam, or with other settings than the exam's, is marked
    partial and is not evidence for a promotion.

    Exit status: 0 all cases passed; 1 a case failed; 2 a file or the command is wrong and nothing ran; 3 a trial
    errored or did not run; 130 interrupted.
    """
    chosen = exams_of(names, everything=everything)
    for prompt in chosen.without_exam:
        click.echo(f"note: {one_line(prompt)} has no exam and is skipped", err=True)
    return run(chosen.paths, options)


eval_command.params += [one for one in eval_of_files.params if isinstance(one, click.Option)]
