"""Groups of commands that are imported on use, and help with sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import click

from agentv.cli.values import Choice
from agentv.errors import PluginError
from agentv.registry.extensions import COMMAND_SECTIONS, COMMANDS, OPTIONS, lacking, registered

FC = TypeVar("FC", bound=Callable[..., Any])

NO_LIMIT = 10_000
"""Maximum length of a command's summary, so large that click never cuts its first sentence."""


DEFAULT_SECTION = "More"
"""Section of commands and options for which none is set."""


class Commands(click.Group):
    """A group whose help lists its commands in sections, each with its whole first sentence."""

    def section_of(self, name: str) -> str:  # noqa: ARG002  # overridden by groups with sections
        """Return the section of a command."""
        return "Commands"

    def summary_of(self, ctx: click.Context, name: str) -> str | None:
        """Return the first sentence of a command's help; None if the command is hidden."""
        command = self.get_command(ctx, name)
        return None if command is None or command.hidden else command.get_short_help_str(limit=NO_LIMIT)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their first sentences, wrapped but not cut."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            summary = self.summary_of(ctx, name)
            if summary is not None:
                sections.setdefault(self.section_of(name), []).append((name, summary))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class Option(click.Option):
    """An option with its section in the help.

    Args:
        section: title of the section; empty: `DEFAULT_SECTION`.
    """

    def __init__(self, *args: Any, section: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def section(title: str) -> Callable[..., Callable[[FC], FC]]:
    """Return `click.option` for options of one section of the help."""
    return partial(click.option, cls=Option, section=title)


class Sectioned(click.Command):
    """A command whose help lists its options in sections, in the order of the first option of each."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; those without a section come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        shown = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        for param in sorted(shown, key=lambda one: not getattr(one, "section", "")):
            if (row := param.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(param, "section", "") or DEFAULT_SECTION, []).append(row)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class Registered(Choice):
    """One of several names, including those that extensions and plugins register.

    Args:
        kind: kind of the registrations.
        own: the names of the core.
    """

    def __init__(self, kind: str, own: Sequence[str]) -> None:
        super().__init__(())
        self._kind, self._own = kind, own
        del self.choices

    def __getattr__(self, name: str) -> Any:
        """Look up `choices` on first use, because a command line without the option does not need them."""
        if name != "choices":
            raise AttributeError(name)
        from agentv.user_code.plugins import added

        self.choices = (*self._own, *added(self._kind))
        return self.choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name.

        Raises:
            BadParameter: the value is not one of the names, or belongs to a missing extension.
        """
        if needs := lacking(self._kind, str(value)):
            raise click.BadParameter(f"'{value}' {needs}", ctx, param)
        return super().convert(value, param, ctx)


def options_of_extensions(command: str) -> tuple[click.Option, ...]:
    """Return the options that extensions and plugins add to a command."""
    from agentv.user_code.plugins import added, usable

    return tuple(usable(OPTIONS, (name for name in added(OPTIONS) if name.rpartition(" ")[0] == command)))


class LazyCommands(Commands):
    """A group whose commands are imported on use.

    Args:
        places: name → `module:attribute`, in the order of the help.
        kind: kind of the commands that extensions and plugins add to the group; empty: they add none.
        suggested: name of a command in other programs → the command to suggest instead.
        sections: title of a section in the help → names in `places`; None: the help has no sections.
    """

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str],
        kind: str = "",
        suggested: Mapping[str, str] | None = None,
        sections: Mapping[str, Collection[str]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.places = places
        self.kind = kind
        self.suggested = suggested or {}
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names by section; in each, those that extensions and plugins add come before those in `places`."""
        from agentv.user_code.plugins import added

        names = [*added(self.kind), *self.places]
        if self.sections is None:
            return names
        titles = list(self.sections)
        return sorted(names, key=lambda name: titles.index(self.section_of(name)))

    def section_of(self, name: str) -> str:
        """Return the section of a command, set by `sections` or its extension; `DEFAULT_SECTION` if none is."""
        if self.sections is None:
            return super().section_of(name)
        from agentv.user_code.plugins import added

        own = (title for title, names in self.sections.items() if name in names)
        found = next(own, None) or added(COMMAND_SECTIONS).get(name, DEFAULT_SECTION)
        return found if found in self.sections else DEFAULT_SECTION

    def summary_of(self, ctx: click.Context, name: str) -> str | None:
        """Return the first sentence of a command's help, if possible from its source, without importing the command."""
        place = self.places.get(name) or registered(self.kind).get(name)
        return (place and _summary_in_source(place)) or super().summary_of(ctx, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; for a broken plugin, a command that raises its error.

        Raises:
            UsageError: the command does not exist, or belongs to a missing extension.
        """
        if cmd_name in self.places:
            found: click.Command | None = resolve_name(self.places[cmd_name])
            return found
        from agentv.user_code.plugins import added_value, broken_extensions  # imported late: searches all packages

        try:
            found = added_value(self.kind, cmd_name)
        except PluginError as error:
            return _broken(cmd_name, error)
        if found is not None:
            return found
        if needs := lacking(COMMANDS, " ".join([*ctx.command_path.split()[1:], cmd_name])):
            raise click.UsageError(f"'{cmd_name}' {needs}", ctx)
        from agentv.authoring.source.nearest import did_you_mean

        suggestion = self.suggested.get(cmd_name)
        if not suggestion and "eval" in self.places and Path(cmd_name).exists():
            suggestion = f"agentv eval {cmd_name}"
        hint = f"did you mean '{suggestion}'?" if suggestion else did_you_mean(cmd_name, self.list_commands(ctx))
        hint = hint or " and ".join(broken_extensions())
        raise click.UsageError(f"no command '{cmd_name}'" + (f"; {hint}" if hint else ""), ctx)


def _summary_in_source(place: str) -> str | None:
    """Return the first sentence of the docstring of the function at `module:name`; None if it cannot be read."""
    module, _, name = place.partition(":")
    spec = find_spec(module)
    origin = spec.origin if spec is not None else None
    source = Path(origin).read_text("utf-8") if origin is not None and origin.endswith(".py") else ""
    found = re.search(rf'^def {name}\(.*?^    """(.*?)"""', source, re.MULTILINE | re.DOTALL)
    return click.Command(name, help=cleandoc(found[1])).get_short_help_str(NO_LIMIT) if found is not None else None


def _broken(name: str, error: PluginError) -> click.Command:
    def fail() -> None:
        raise error

    accept_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=fail, help=str(error), context_settings=accept_anything, add_help_option=False)
