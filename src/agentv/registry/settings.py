"""How a setting of a run is declared: by one field, with the flag, the variable and the bounds that it has.

`agentv eval` takes its options from the fields of `agentv.app.settings.EvalSettings`, `evaluate()` its keywords, and
the `run:` block of files those of `RunKeys`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
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


class Bounds(Struct, frozen=True):
    """Bounds of a number from a command line or from Python; `above` and `below` are exclusive.

    Attributes:
        of: what the number counts, for messages: `seconds`.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    of: str | None = None

    @property
    def wanted(self) -> str:
        """The numbers within the bounds, in words."""
        if self.least is not None and self.most is not None:
            return f"between {self.least:g} and {self.most:g}"
        upper = f" and at most {self.most:g}" if self.most is not None else ""
        upper = f" and below {self.below:g}" if self.below is not None else upper
        return f"{f'a number of {self.of} ' if self.of else ''}above {self.above:g}{upper}"

    def contain(self, number: float) -> bool:
        """Whether a number is within the bounds, and finite."""
        above = -math.inf if self.above is None else self.above
        below = math.inf if self.below is None else self.below
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return above < number < below and least <= number <= most


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeys(Declared):
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
        Bounds(above=0, of="seconds"),
        Doc("time limit for one attempt, in seconds"),
        Flag("--timeout", "Time limit for one attempt, in seconds.", "S"),
    ] = None
    budget_usd: Annotated[
        float | None,
        Between(0.0001),
        Bounds(above=0, of="US dollars"),
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
        Flag(
            "--trust-data", "Allow rows of data files to run code and to read environment variables.", section="Input"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Setting:
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
    def several(self) -> bool:
        """Whether several values can be given."""
        kinds = get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)
        return any(get_origin(one) in (tuple, Mapping) for one in kinds)

    def read(self, recorded: object) -> Any:
        """The value of a setting as `run.json` has it; None if it has none of this type."""
        if isinstance(recorded, list):
            return tuple(map(str, recorded)) if self.several else None
        kinds = get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)
        numbers = (int, float) if float in kinds else (int,) if int in kinds else ()
        if isinstance(recorded, bool):
            return recorded if bool in kinds else None
        is_text = str in kinds or any(get_origin(one) is Literal for one in kinds)
        return recorded if isinstance(recorded, (*numbers, *((str,) if is_text else ()))) else None

    def marked(self, marker: type[T]) -> T | None:
        """The marker of this class; None if the field has none."""
        return next((one for one in self.markers if isinstance(one, marker)), None)

    @property
    def flag(self) -> str:
        """The flag as messages spell it: the first long spelling; empty without one."""
        flag = self.marked(Flag)
        spelled = flag.spelled.split() if flag is not None else []
        return next((one.partition("/")[0] for one in spelled if one.startswith("--")), "")

    def check(self, name: str, value: Any) -> None:
        """Refuse a number out of the bounds. The command line does so itself; a call of the SDK comes here first.

        Raises:
            UsageError: the message names the setting.
        """
        between, bounds = self.marked(Between), self.marked(Bounds)
        if value is None or self.kind not in (int, float):
            return
        if self.kind is int and between is not None and (not isinstance(value, int) or value < (between.low or 0)):
            raise UsageError(f"{name} must be a whole number of at least {between.low:g}, found {value!r}")
        if bounds is not None and not bounds.contain(value):
            raise UsageError(f"{name} must be {bounds.wanted}, found {value!r}")


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
