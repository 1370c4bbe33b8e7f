"""The command `agentv`: which commands there are, and what becomes of their errors."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

import click

from agentv.cli.lazy import LazyCommands
from agentv.cli.printing import print_error
from agentv.errors import AgentvError, ExitStatus
from agentv.foreign.guard import attempt
from agentv.model.response import Failure
from agentv.reports.text import safe
from agentv.version import __version__

COMMANDS = {
    "eval": "agentv.cli.eval:command",
    "validate": "agentv.cli.validate:command",
    "assert": "agentv.cli.grade:command",
    "compare": "agentv.cli.compare:command",
    "prompt": "agentv.cli.prompt:group",
    "targets": "agentv.cli.targets:command",
    "convert": "agentv.cli.convert:command",
    "init": "agentv.cli.init:command",
    "schema": "agentv.cli.schema:command",
    "explain": "agentv.cli.explain:command",
    "results": "agentv.cli.results:group",
    "cache": "agentv.cli.cache:command",
    "power": "agentv.cli.power:command",
    "trend": "agentv.cli.trend:command",
}
"""Loaded when they are called: a command imports what it needs and no more."""

NOT_YET = ("serve",)


@click.group(
    cls=LazyCommands,
    places=COMMANDS,
    not_yet=NOT_YET,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}'",
)
@click.version_option(__version__, "-V", "--version", message="agentv %(version)s")
def cli() -> None:
    """Test prompts, models and agents against files of cases, and say with evidence if they are good enough."""


def run(arguments: list[str]) -> int:
    """Run a command; its exit status. Not even a bug of ours comes out as a traceback, unless AGENTV_DEBUG asks."""
    # a run makes millions of objects and next to no cycles: looking for them at Python's pace took a third of the time
    gc.set_threshold(100_000, 50, 100)
    if os.environ.get("AGENTV_DEBUG"):
        return _run(arguments)
    status = attempt(_run, arguments, "internal-error", "agentv")
    if isinstance(status, Failure):
        click.echo(f"internal error: {safe(status.message)}", err=True)
        click.echo("This is a bug in agentv. What was saved is safe; AGENTV_DEBUG=1 shows where it broke.", err=True)
        return ExitStatus.ERRORED
    return status


def _run(arguments: list[str]) -> int:
    try:
        status = cli.main(arguments, prog_name="agentv", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except AgentvError as error:
        print_error(error)
        return error.status
    except (OSError, SystemExit) as error:  # click exits where whoever read our output has gone
        return _unwritable(error if isinstance(error, OSError) else BrokenPipeError())
    return int(status or 0)


def _unwritable(error: OSError) -> int:
    """What was asked for could not be written: never a success, whatever the verdicts were."""
    if isinstance(error, BrokenPipeError):
        # whoever read our output has gone; Python would complain once more when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.ERRORED
    with suppress(OSError, ValueError):
        click.echo(f"error: {safe(str(error))}", err=True)
    return ExitStatus.ERRORED


def _interrupted() -> int:
    click.echo("\ninterrupted; nothing more was run", err=True)
    return ExitStatus.INTERRUPTED
