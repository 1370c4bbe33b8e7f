"""The command `agentv`: its subcommands, and how their errors are handled."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click
from click.exceptions import NoArgsIsHelpError

from agentv.cli.formats import guarded
from agentv.cli.lazy import LazyCommands
from agentv.cli.printing import print_error, without_secrets
from agentv.cli.values import Choice, expected_value
from agentv.errors import AgentvError, ExitStatus, PluginError
from agentv.model.values.response import Failure
from agentv.registry.extensions import COMMANDS as EXTENSION_COMMANDS
from agentv.registry.extensions import OPTIONS, lacking
from agentv.reports.text import safe
from agentv.user_code.command_process import RESUME_HINT, raise_on_signals, resume_line
from agentv.user_code.guard import attempt, translated
from agentv.version import __version__

SECTIONS = {
    "Run": {
        "eval": "agentv.cli.eval:command",
        "validate": "agentv.cli.validate:command",
        "init": "agentv.cli.init:command",
        "prompt": "agentv.cli.prompt:group",
    },
    "Read": {
        "results": "agentv.cli.results:group",
        "compare": "agentv.cli.compare:command",
        "trend": "agentv.cli.compare:trend_command",
    },
    "Judge": {"power": "agentv.cli.power:command"},
    "Agents": {},
    "Share": {"convert": "agentv.cli.convert:command"},
    "More": {
        "assert": "agentv.cli.assertion:command",
        "targets": "agentv.cli.targets:command",
        "explain": "agentv.cli.reference:explain_command",
        "schema": "agentv.cli.reference:schema_command",
        "cache": "agentv.cli.cache:command",
        "plugins": "agentv.cli.reference:command",
        "completion": "agentv.cli.reference:completion_command",
        "help": "agentv.cli.reference:help_command",
    },
}
"""Section of the help → the core's commands in it, which are imported when they are called."""

_NOTHING_TO_CLEAN_UP = (["eval"], ["assert"], ["validate"])
"""Commands that have nothing to clean up before their run starts: until then, a signal ends the process at once."""

SUGGESTED_COMMANDS = {
    **dict.fromkeys(("run", "test", "evaluate", "start"), "eval"),
    **dict.fromkeys(("report", "open"), "results report"),
    "show": "results show",
    **dict.fromkeys(("list", "ls", "runs", "history"), "results list"),
    **dict.fromkeys(("export",), "results export"),
    **dict.fromkeys(("lint",), "validate"),
    **dict.fromkeys(("new", "create"), "init"),
    **dict.fromkeys(("doctor",), "targets --check"),
}
"""Name of a command in other programs → the command to use."""


OPTION_HINTS = {
    **dict.fromkeys(("--model", "--models", "--provider", "--providers"), "did you mean --target PROVIDER:MODEL?"),
    **dict.fromkeys(("--config", "--file", "-c"), "eval files are arguments"),
    **dict.fromkeys(("--max-concurrency", "--concurrency", "--parallel", "--jobs"), "did you mean --workers?"),
    **dict.fromkeys(("--output", "--output-path"), "did you mean --out?"),
    **dict.fromkeys(("--filter-pattern", "--only", "--case"), "did you mean --filter?"),
    "--filter-failing": "did you mean --last-failed?",
    "--filter-first-n": "did you mean --limit?",
    "--prompts": "did you mean --prompt NAME?",
    **dict.fromkeys(("--repetitions", "--trials", "--epochs", "--num-trials"), "did you mean --repeat?"),
}
"""Option of other programs → hint that says what to use."""


@click.group(
    cls=LazyCommands,
    places={name: place for commands in SECTIONS.values() for name, place in commands.items()},
    kind=EXTENSION_COMMANDS,
    sections=SECTIONS,
    suggested=SUGGESTED_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}'",
)
@click.version_option(__version__, "-V", "--version", message="agentv %(version)s")
def cli() -> None:
    """Test prompts, models and agents against files of cases, and report with evidence whether they are good enough."""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status. Tracebacks are shown only if AGENTV_DEBUG is set, even for bugs."""
    with guarded(os.environ):
        if os.environ.get("AGENTV_DEBUG"):
            return _run(arguments)
        status = attempt(_run, arguments, "internal-error", "agentv")
        if isinstance(status, Failure):
            click.echo(f"internal error: {safe(without_secrets(status.message))}", err=True)
            click.echo(
                "This is a bug in agentv. What was saved is safe; AGENTV_DEBUG=1 shows where it broke.", err=True
            )
            _print_resume_hint()
            return ExitStatus.ERRORED
        return status


def _run(arguments: list[str]) -> int:
    if arguments[:1] not in _NOTHING_TO_CLEAN_UP or "--watch" in arguments:
        raise_on_signals()
    try:
        with translated(_as_plugin_error):
            if "_AGENTV_COMPLETE" in os.environ:
                from agentv.cli.reference import complete

                status = complete(cli, os.environ["_AGENTV_COMPLETE"])
            else:
                status = cli.main(arguments, prog_name="agentv", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        if isinstance(error, click.BadOptionUsage) and error.ctx is None:
            error.ctx = _context_of(arguments)  # click's parser does not set it
        _print_usage_error(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("\ninterrupted; nothing more was run", err=True)
        _print_resume_hint()
        return ExitStatus.INTERRUPTED
    except AgentvError as error:
        print_error(error)
        if error.status == ExitStatus.ERRORED:
            _print_resume_hint()
        return error.status
    except (OSError, SystemExit) as error:  # click raises SystemExit if the reader of stdout has closed it
        return _report_write_error(error if isinstance(error, OSError) else BrokenPipeError())
    return int(status or 0)


def _print_usage_error(error: click.ClickException) -> None:
    """Print a usage error to stderr in the form of other errors, or the help of a group that is called alone."""
    if isinstance(error, NoArgsIsHelpError):
        click.echo(error.message, err=True)
        return
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    message = _message_of(error).rstrip(".")
    if not message[:2].isupper():  # a placeholder, such as FORMAT
        message = message[:1].lower() + message[1:]
    click.echo(f"error: {safe(message)}", err=True)
    if ctx is not None and ctx.parent is not None:
        click.echo(f"  see: {ctx.command_path} --help", err=True)


def _message_of(error: click.ClickException) -> str:
    """Return the message, with a hint of what to write or to install instead if there is one."""
    from agentv.authoring.source.nearest import nearest

    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        words = " ".join([*error.ctx.command_path.split()[1:], error.option_name])
        if needs := lacking(OPTIONS, words):
            return f"'{error.option_name}' {needs}"
        known = {name.strip("-"): name for one in error.ctx.command.params for name in one.opts if name[0] == "-"}
        near = nearest(error.option_name.strip("-"), known)
        hint = OPTION_HINTS.get(error.option_name) or (f"did you mean {known[near]}?" if near else None)
        return f"no option '{error.option_name}'" + (f"; {hint}" if hint else "")
    if isinstance(error, click.BadOptionUsage):
        return _missing_value(error)
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        return _bad_value(error)
    return error.format_message()


def _context_of(arguments: list[str]) -> click.Context:
    """Return the context of the command that a command line calls."""
    ctx = click.Context(cli, info_name="agentv")
    for word in arguments:
        inner = ctx.command.get_command(ctx, word) if isinstance(ctx.command, click.Group) else None
        if inner is None:
            break
        ctx = click.Context(inner, parent=ctx, info_name=word)
    return ctx


def _missing_value(error: click.BadOptionUsage) -> str:
    """Return a message like `--rerun needs a value: failed or errored`, or click's own if the option takes no value."""
    of_command = error.ctx.command.params if error.ctx is not None else []
    option = next((one for one in of_command if error.option_name in one.opts), None)
    if error.ctx is None or option is None or getattr(option, "is_flag", False):
        return error.format_message()
    expected = expected_value(option.type) or option.make_metavar(error.ctx)
    return f"{error.option_name} needs a value: {expected}"


def _bad_value(error: click.BadParameter) -> str:
    """Return a message with the expected value of an option or an argument, or else with click's reason."""
    param, message = error.param, error.message[:1].lower() + error.message[1:]
    if param is None:
        return error.message
    name = max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name
    if isinstance(param.type, Choice):
        return f"{name} {message}"
    expected = expected_value(param.type)
    return f"{name} must be {expected}" if expected else f"{name}: {message}"


def _as_plugin_error(error: Exception) -> PluginError | None:
    """Convert an exception that a plugin raised; return None if none did, or if the exception is an expected error."""
    if "agentv.user_code.plugins" not in sys.modules or isinstance(error, (AgentvError, click.ClickException)):
        return None
    from agentv.user_code.plugins import plugin_at_fault

    found = plugin_at_fault(error)
    if found is None:
        return None
    plugin, what = found
    status = ExitStatus.WRONG if resume_line() is None else ExitStatus.ERRORED
    hint = f"upgrade {plugin.package}, or remove it: pip uninstall {plugin.package}"
    return PluginError(f"{plugin.title} raised {what}", hint, status)


def _print_resume_hint() -> None:
    line = resume_line()
    if line is not None:
        click.echo(f"{RESUME_HINT}\n  {safe(line)}", err=True)


def _report_write_error(error: OSError) -> int:
    """Report that output could not be written and return the exit status, which is an error whatever the verdicts."""
    if isinstance(error, BrokenPipeError):
        # the reader of stdout has closed it; without this, Python would report that again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.ERRORED
    with suppress(OSError, ValueError):
        click.echo(f"error: {safe(str(error))}", err=True)
        _print_resume_hint()
    return ExitStatus.ERRORED
