"""How a setting of a run is declared: by one field, with the flag, the variable and the bounds that it has.

`agentv eval` takes its options from the fields of `agentv.app.settings.EvalSettings`, `evaluate()` its keywords, and
the `run:` block of files those of `RunKeys`.
"""

import math
import os
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from msgspec import Struct

from agentv.errors import UsageError
from agentv.registry.fields import Between, Declared, Doc, Nonempty, Seconds, Text, Verbatim

T = TypeVar("T")

MOST_USED = "Most used"
STATISTICS = "Repeats and statistics"
EARLIER = "Earlier answers"
SECTIONS = (MOST_USED, "Output", "Cases", "Input", "Limits", STATISTICS, EARLIER, "Checks and debugging")
"""Sections of the help of `agentv eval`."""


class Flag(Struct, frozen=True):
    """The option of `agentv eval` that gives a setting. Its type and whether it repeats follow from the field's type.

    Attributes:
        spelled: its spellings, separated by spaces; `--x/--no-x` for a setting that the files may also decide.
        help: a sentence for `--help`.
        metavar: what stands for the value.
        section: its section of the help; empty: that of its group.
        bare: the value of the option alone; None: it needs a value.
        table: kind of what extensions add to its values, beside its default.
        file: it is the path of an existing file.
        parameter: its name in the command's options, if that is not the field's.
    """

    spelled: str
    help: str
    metavar: str | None = None
    section: str = ""
    bare: str | None = None
    table: str | None = None
    file: bool = False
    parameter: str | None = None


class Resumed(Struct, frozen=True):
    """A run that is resumed has the value that it began with, unless the command gives one. `run.json` has it."""


class Variable(Struct, frozen=True):
    """The environment variable that gives a setting if no flag does."""

    name: str


class RunKeys(Declared, Struct, frozen=True, kw_only=True):
    """Settings that the `run:` block of files gives too. None: the files decide."""

    section: ClassVar[str] = "Limits"

    workers: Annotated[
        Annotated[int, Between(1)] | None,
        Doc("number of trials to run concurrently"),
        Flag("-j --workers", "Number of trials to run concurrently.", "N", MOST_USED),
    ] = None
    cluster: Annotated[
        Annotated[Text | None, Nonempty(), Verbatim()],
        Doc("a key of metadata or vars, or a template; cases with equal values depend on each other"),
        Resumed(),
        Flag("--cluster", "Metadata key or variable; cases with the same value form a cluster.", "KEY", STATISTICS),
    ] = None
    timeout_s: Annotated[
        Seconds | None,
        Doc("time limit for one attempt, in seconds"),
        Flag("--timeout", "Time limit for one attempt, in seconds.", "S"),
    ] = None
    budget_usd: Annotated[
        float | None,
        Between(0.0001),
        Doc("maximum cost of a run in US dollars: targets, judges and embeddings"),
        Resumed(),
        Flag("--budget-usd", "Stop before spending more than this.", "USD"),
    ] = None
    budget_tokens: Annotated[
        Annotated[int, Between(1)] | None,
        Doc("maximum number of tokens of a run, input and output"),
        Resumed(),
        Flag("--budget-tokens", "Stop before using more tokens than this.", "N"),
    ] = None
    max_errors: Annotated[
        Annotated[int, Between(1)] | None,
        Doc("stop after this many errored trials"),
        Flag("--max-errors", "Stop after N errored trials.", "N"),
    ] = None
    cache: Annotated[
        bool | None,
        Doc("reuse answers of earlier runs, and keep those of this run"),
        Flag("--cache/--no-cache", "Reuse answers of earlier runs, and store new ones.", None, EARLIER),
    ] = None
    trust_data: Annotated[
        bool | None,
        Doc("allow rows of files in `tests`, and CSV files, to name code and read the environment"),
        Flag("--trust-data", "Allow rows of data files to run code and to read environment variables.", None, "Input"),
    ] = None


class Setting(Struct, frozen=True):
    """What the field of a setting declares.

    Attributes:
        kind: its type, without None.
        optional: whether it may be None.
        section: of the group.
        markers: what else its annotation says.
    """

    kind: Any
    optional: bool
    default: Any
    section: str
    markers: tuple[object, ...]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it may have, without None."""
        return get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)

    @property
    def several(self) -> bool:
        """Whether several values can be given."""
        return any(get_origin(one) in (tuple, Mapping) for one in self.kinds)

    def read(self, recorded: object) -> Any:
        """The value of a setting as `run.json` has it; None if it has none of this type."""
        if isinstance(recorded, list):
            return tuple(map(str, recorded)) if self.several else None
        return recorded if any(_is_one(recorded, kind) for kind in self.kinds) else None

    def marked(self, marker: type[T]) -> T | None:
        """The marker of this class; None if the field has none."""
        return next((one for one in self.markers if isinstance(one, marker)), None)

    @property
    def flag(self) -> str:
        """The flag as messages spell it: the first long spelling; empty without one."""
        flag = self.marked(Flag) or Flag("", "")
        return next((one.partition("/")[0] for one in flag.spelled.split() if one.startswith("--")), "")

    def given(self, value: Any) -> Any:
        """A value from Python as the settings have it: a path as text, a text or a list of texts as a tuple."""
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str) and not any(_is_one(value, kind) for kind in self.kinds):
            value = [value]
        is_list = self.several and isinstance(value, list | tuple | set)
        return tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in value) if is_list else value

    def check(self, name: str, value: Any) -> None:
        """Refuse a value of another type or out of the bounds. The command line does so itself; the SDK comes here.

        Raises:
            UsageError: the message names the setting.
        """
        if self.marked(Flag) is None or (value is None and self.optional):
            return
        between = self.marked(Between) or Between()
        inside = not isinstance(value, int | float) or (
            (between.low is None or value >= between.low)
            and (between.high is None or value <= between.high)
            and math.isfinite(value)
        )
        if not inside or not any(_is_one(value, kind) for kind in self.kinds):
            wanted = " or ".join(_WORDS[get_origin(kind) or kind](kind, between) for kind in self.kinds)
            raise UsageError(f"{name} must be {wanted}, found {value!r}")


def _is_one(value: object, kind: Any) -> bool:
    """Whether a value is of the type of a setting."""
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float) if kind is float else isinstance(value, origin or kind)


def _bounded(what: str, between: Between) -> str:
    if between.low is None:
        return what
    within = f"of at least {between.low:g}" if between.high is None else f"from {between.low:g} to {between.high:g}"
    return f"{what} {within}"


_WORDS: Mapping[Any, Callable[[Any, Between], str]] = {
    int: lambda _, between: _bounded("a whole number", between),
    float: lambda _, between: _bounded("a number", between),
    bool: lambda *_: "True or False",
    str: lambda *_: "a text",
    tuple: lambda *_: "a list of texts",
    Mapping: lambda *_: "a mapping",
    Literal: lambda kind, _: " or ".join(map(repr, get_args(kind))),
}
"""A type of settings and the bounds of a number, in words."""


def setting_of(annotation: Any, default: Any, section: str) -> Setting:
    """What the annotation and the default of a field declare, in a group with this section of the help."""
    markers: list[object] = []
    kind, optional = annotation, False
    while True:
        if get_origin(kind) is Annotated:
            kind, *found = get_args(kind)
            markers += found
        elif get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
            members = [one for one in get_args(kind) if one is not NoneType]
            kind, optional = Union[tuple(members)], True  # noqa: UP007  # members that are known at run time
        else:
            return Setting(kind, optional, default, section, tuple(markers))
