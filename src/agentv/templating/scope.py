"""What placeholders can see, what they are written in, and how a rendering fails (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agentv.model.values.formatting import plural
from agentv.model.values.values import EMPTY, Json

UNREADABLE = "not a valid template"
"""How the message begins where the syntax is wrong, whatever the variables are."""

LITERAL_HINT = "for literal braces, write {{ '{{' }}"


class Language(Struct, frozen=True):
    """What placeholders are written in.

    Attributes:
        nunjucks: values, conditions and filters are those of Nunjucks, as promptfoo renders them.
        missing_empty: a variable that is not set is empty text, and so is what is in it.
    """

    nunjucks: bool = False
    missing_empty: bool = False


JINJA = Language()


class Scope(Struct, frozen=True):
    """What placeholders can see: variables by name, all of them as `vars`, and the environment as `env`.

    `names` are further things to see, such as `prompt`; they hide variables of the same name, not `vars.prompt`.
    `closed`: the text is data, which may not read the environment. `language`: what the text is written in.
    """

    vars: Mapping[str, Json]
    env: Mapping[str, str]
    names: Mapping[str, Json] = field(default=EMPTY)
    closed: bool = False
    language: Language = JINJA


class RenderError(Exception):
    """A text cannot be rendered.

    Attributes:
        code: `undefined-variable`, `unset-environment`, `untrusted-data` or `bad-template`.
        name: the variable or environment variable in question, where it is one.
        line: of the text, from 1, where its syntax is wrong and that is known.
    """

    def __init__(self, code: str, message: str, name: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.name = name
        self.line = line


class MissingItemError(RenderError):
    """A list is shorter than an expression supposes."""

    def __init__(self, items: Sequence[object], index: int, name: str | None = None) -> None:
        place, holder = (f"item {index}", "the list") if name is None else (f"{name}[{index}]", f"'{name}'")
        message = f"there is no {place}: {holder} has {plural(len(items), 'item')}"
        super().__init__("undefined-variable", message)
        self.items = items
        self.index = index

    def of(self, names: Mapping[str, object]) -> MissingItemError:
        """The same error with the name of the list, where it is a variable."""
        name = next((name for name, value in names.items() if value is self.items), None)
        return MissingItemError(self.items, self.index, name)


class Environment(Mapping[str, str]):
    """The environment, as `env`: a variable that is not set is its own kind of fault."""

    def __init__(self, values: Mapping[str, str], *, closed: bool = False) -> None:
        self._given = values
        self._closed = closed

    @property
    def _values(self) -> Mapping[str, str]:
        if self._closed:
            raise RenderError("untrusted-data", "data must not read the environment")
        return self._given

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __str__(self) -> str:
        raise RenderError("bad-template", "the expression must be a value, found the whole environment")

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
