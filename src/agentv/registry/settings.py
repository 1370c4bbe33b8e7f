"""Declarations of the settings of a run: each is one field with its flag, its environment variable and its bounds.

The options of `agentv eval` and the keywords of `evaluate()` come from the fields of
`agentv.app.settings.EvalSettings`; the keys of the `run:` block of files come from `RunKeys`.
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
"""Sections in the help of `agentv eval`, in order."""


class Flag(Struct, frozen=True):
    """The option of `agentv eval` for a setting. Its type, and whether it is repeatable, follow from the field's type.

    Attributes:
        spelled: spellings, separated by spaces; `--x/--no-x` for a setting that files may also set.
        help: a sentence for `--help`.
        metavar: placeholder for the value in the help.
        section: section in the help; empty: that of its group.
        bare: value if the option is given without one; None: it needs a value.
        table: kind of extensions' registrations whose names are values too, in addition to the default.
        file: whether the value is the path of an existing file.
        parameter: name of the command's parameter, if it differs from the field's.
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
    """Marks a setting that a resumed run takes from `run.json`, unless the command line sets it."""


class Variable(Struct, frozen=True):
    """The environment variable for a setting, used if no flag sets it."""

    name: str


class RunKeys(Declared, Struct, frozen=True, kw_only=True):
    """Settings that the `run:` block of files can also set. None: use the value in the files."""

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
    """The declaration of a setting, read from its field.

    Attributes:
        kind: type, without None.
        optional: whether it may be None.
        section: section of its group in the help.
        markers: metadata of its annotation.
    """

    kind: Any
    optional: bool
    default: Any
    section: str
    markers: tuple[object, ...]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types of its values, without None."""
        return get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)

    @property
    def several(self) -> bool:
        """Whether it has several values."""
        return any(get_origin(one) in (tuple, Mapping) for one in self.kinds)

    def read(self, recorded: object) -> Any:
        """Return the value recorded in `run.json`; None if it does not have the right type."""
        if isinstance(recorded, list):
            return tuple(map(str, recorded)) if self.several else None
        return recorded if any(_has_type(recorded, kind) for kind in self.kinds) else None

    def marked(self, marker: type[T]) -> T | None:
        """Return the marker of this class, or None."""
        return next((one for one in self.markers if isinstance(one, marker)), None)

    @property
    def flag(self) -> str:
        """The flag as shown in messages: its first long spelling, or "" if none exists."""
        flag = self.marked(Flag) or Flag("", "")
        return next((one.partition("/")[0] for one in flag.spelled.split() if one.startswith("--")), "")

    def given(self, value: Any) -> Any:
        """Convert a value from the Python API: paths to text; text or a list to a tuple, if the setting takes one."""
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str) and not any(_has_type(value, kind) for kind in self.kinds):
            value = [value]
        is_list = self.several and isinstance(value, list | tuple | set)
        return tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in value) if is_list else value

    def check(self, name: str, value: Any) -> None:
        """Check the type and the bounds of a value. For the Python API; the command line has its own checks.

        Raises:
            UsageError: the value is invalid; the message names the setting.
        """
        if self.marked(Flag) is None or (value is None and self.optional):
            return
        between = self.marked(Between) or Between()
        inside = not isinstance(value, int | float) or (
            (between.low is None or value >= between.low)
            and (between.high is None or value <= between.high)
            and math.isfinite(value)
        )
        if not inside or not any(_has_type(value, kind) for kind in self.kinds):
            wanted = " or ".join(_DESCRIPTIONS[get_origin(kind) or kind](kind, between) for kind in self.kinds)
            raise UsageError(f"{name} must be {wanted}, found {value!r}")


def _has_type(value: object, kind: Any) -> bool:
    """Return whether a value has the type."""
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


_DESCRIPTIONS: Mapping[Any, Callable[[Any, Between], str]] = {
    int: lambda _, between: _bounded("a whole number", between),
    float: lambda _, between: _bounded("a number", between),
    bool: lambda *_: "True or False",
    str: lambda *_: "a text",
    tuple: lambda *_: "a list of texts",
    Mapping: lambda *_: "a mapping",
    Literal: lambda kind, _: " or ".join(map(repr, get_args(kind))),
}
"""Type of a setting → a function that describes the expected value, with its bounds, for messages."""


def setting_of(annotation: Any, default: Any, section: str) -> Setting:
    """Return the declaration of a setting from its field's annotation and default, and its group's section."""
    markers: list[object] = []
    kind, optional = annotation, False
    while True:
        if get_origin(kind) is Annotated:
            kind, *found = get_args(kind)
            markers += found
        elif get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
            members = [one for one in get_args(kind) if one is not NoneType]
            kind, optional = Union[tuple(members)], True  # noqa: UP007  # members are known at run time only
        else:
            return Setting(kind, optional, default, section, tuple(markers))
