"""The help of every command is complete at any width."""

import click
import pytest

from agentv.cli.lazy import NO_LIMIT, LazyCommands
from agentv.cli.main import cli

WIDTHS = (50, 64, 80, 100)


def every_command(command, context, names=("agentv",)):
    yield names, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            yield from every_command(found, click.Context(found, context, info_name=name), (*names, name))


COMMANDS = list(every_command(cli, click.Context(cli, info_name="agentv")))


def words(text):
    """Return the text without whitespace, which wrapping changes."""
    return "".join(text.split())


def first_sentence(command):
    return " ".join((command.help or "").split("\n\n")[0].split()).split(". ")[0].removesuffix(".")


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_no_line_is_too_long(width):
    wrong = []
    for names, command, context in COMMANDS:
        shown = command.get_help(click.Context(command, context.parent, info_name=names[-1], terminal_width=width))
        expected = [one.help for one in command.params if isinstance(one, click.Option) and not one.hidden]
        expected += [command.help, command.epilog]
        if isinstance(command, click.Group):
            expected += [first_sentence(command.get_command(context, name)) for name in command.list_commands(context)]
        wrong += [(names, text) for text in expected if text and words(text.replace("\b", "")) not in words(shown)]
        wrong += [(names, line) for line in shown.split("\n") if len(line) > width and not line.startswith("  -")]
    assert wrong == []


def test_lists_hold_what_the_commands_say_of_themselves():
    shown = {}
    for names, command, context in COMMANDS:
        if isinstance(command, LazyCommands):
            shown |= {(*names, name): command.summary_of(context, name) for name in command.list_commands(context)}
    commands = {names: command for names, command, _ in COMMANDS if names in shown}
    assert shown == {names: one.get_short_help_str(NO_LIMIT) for names, one in commands.items() if not one.hidden}
