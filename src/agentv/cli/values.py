"""Values of options and arguments: their types, messages about invalid ones, and shell completion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import FloatParamType, IntParamType, IntRange

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Choice(click.Choice[str]):
    """One of several names. The message about an invalid value lists the names and suggests the closest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name.

        Raises:
            BadParameter: the value is not one of the names.
        """
        if value in self.choices:
            return str(value)
        from agentv.authoring.source.nearest import did_you_mean  # most command lines are valid

        hint = did_you_mean(str(value), self.choices)
        message = f"must be {one_of(self.choices)}, found '{value}'"
        raise click.BadParameter(f"{message}; {hint}" if hint else message, ctx, param)


def one_of(names: Iterable[str]) -> str:
    """Return the names as text: `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def expected_value(kind: click.ParamType[Any]) -> str | None:
    """Describe a type's values: `a whole number of 1 or more`, `failed or errored`; None if it accepts any text."""
    if isinstance(kind, click.Choice):
        return one_of(kind.choices)
    if not isinstance(kind, IntParamType | FloatParamType):
        return None
    what = "a whole number" if isinstance(kind, IntParamType) else "a number"
    if not isinstance(kind, IntRange | click.FloatRange):
        return what
    low, high = kind.min, kind.max
    if low is None or high is None or kind.min_open or kind.max_open:
        at_least = "" if low is None else f"above {low:g}" if kind.min_open else f"of {low:g} or more"
        at_most = "" if high is None else f"below {high:g}" if kind.max_open else f"at most {high:g}"
        return f"{what} {' and '.join(one for one in (at_least, at_most) if one)}".rstrip()
    return f"{what} from {low:g} to {high:,}"


class Share(click.FloatRange):
    """A share, given as a number between 0 and 1 or in percent."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share.

        Raises:
            click.BadParameter: it is not a number, or out of range.
        """
        of_one: Any = value
        if isinstance(value, str) and value.strip().endswith("%"):
            percent: Any = value.strip()[:-1]
            of_one = click.FLOAT.convert(percent, param, ctx) / 100
        if isnan(click.FLOAT.convert(of_one, param, ctx)):  # no bound excludes it
            self.fail(f"{value!r} is not a number.", param, ctx)
        return float(super().convert(of_one, param, ctx))

    def _describe_range(self) -> str:
        """Return the range for the help; "" without bounds, for which click would write `x<=None`."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def with_options(words: Sequence[str], added: Sequence[str]) -> list[str]:
    """Return the arguments with options added, before a `--`, which only paths may follow."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *added, *words[end:]]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete files and directories."""
    del ctx, param
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete `last` and the newest runs of this repository, or directories if none matches."""
    del ctx, param
    from click.shell_completion import CompletionItem

    from agentv.app.results.listing import listed_runs
    from agentv.reports.runs import run_words

    names = {"last": "the newest run"} | {Path(run.directory).name: run_words(run) for run in listed_runs(50).runs}
    found = [CompletionItem(name, help=words) for name, words in names.items() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="dir")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the codes of diagnostics and failures."""
    del ctx, param
    from click.shell_completion import CompletionItem

    from agentv.codes import CODES

    return [CompletionItem(code, help=CODES[code]) for code in sorted(CODES) if code.startswith(incomplete)]
