"""`{{ name }}` placeholders: Jinja2 in its sandbox, rendered once, without comments (SPEC section 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from agentv.model.values import EMPTY, Json

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

_OLDER = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ALONE = re.compile(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
_NEVER = "\x00\x01"
"""Stands where Jinja wants a comment delimiter: no text of ours holds it, so comments are off."""

_RAISED = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    NameError,
    RecursionError,
    MemoryError,
)
"""What an expression of the author's can raise: `1 / 0`, `"a" + 1`, `[][0]`, `1e999`."""

LITERAL_HINT = "for literal braces write {{ '{{' }}"


class RenderError(Exception):
    """A text cannot be rendered.

    Attributes:
        code: `undefined-variable`, `unset-environment` or `bad-template`.
        name: the variable or environment variable in question, where it is one.
    """

    def __init__(self, code: str, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.name = name


@dataclass(frozen=True, slots=True)
class Scope:
    """What placeholders can see: variables by name, all of them as `vars`, and the environment as `env`.

    `names` are further things to see, such as `prompt`; they hide variables of the same name, not `vars.prompt`.
    """

    vars: Mapping[str, Json]
    env: Mapping[str, str]
    names: Mapping[str, Json] = field(default=EMPTY)


def has_placeholder(text: str) -> bool:
    """Whether rendering would do anything to this text."""
    return "{{" in text or "{%" in text


def environment_names(text: str) -> tuple[str, ...]:
    """The environment variables that a text names in the older spelling, `${{ NAME }}`."""
    return tuple(_OLDER.findall(text))


def render(text: str, scope: Scope) -> Json:
    """The text with its placeholders filled in; a lone placeholder keeps the type of its value.

    Raises:
        RenderError: a name is not defined, the environment lacks a variable, or the syntax is wrong.
    """
    alone = _ALONE.fullmatch(text)
    # `$` in front is the older spelling of an environment variable, which _compiled translates
    return _run(_expression(alone[1].strip()) if alone else _compiled(text), scope, native=alone is not None)


def render_text(text: str, scope: Scope) -> str:
    """The text with its placeholders filled in, always as text.

    Raises:
        RenderError: as `render`.
    """
    return str(_run(_compiled(text), scope, native=False)) if has_placeholder(text) else text


def evaluate(expression: str, scope: Scope) -> Json:
    """The value of a bare expression, as between braces.

    Raises:
        RenderError: as `render`.
    """
    return _run(_expression(expression), scope, native=True)


def undeclared(text: str) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        RenderError: its syntax is wrong.
    """
    from jinja2 import TemplateError, meta

    try:
        return frozenset(meta.find_undeclared_variables(_environment().parse(_modern(text))))
    except TemplateError as error:
        raise _syntax(error) from None


def _run(template: Template, scope: Scope, *, native: bool) -> Json:
    from jinja2 import TemplateError

    names: dict[str, Any] = {**scope.vars, **scope.names, "vars": scope.vars, "env": _Environment(scope.env)}
    try:
        if native:
            context = template.new_context(names)
            list(template.root_render_func(context))
            value: Json = context.vars["result"]
            return _refuse(value) if _is_undefined(value) else value
        return template.render(names)
    except TemplateError as error:
        raise RenderError("bad-template", f"cannot render: {error}") from None
    except _RAISED as error:
        raise RenderError("bad-template", f"cannot render: {type(error).__name__}: {error}") from None


def _is_undefined(value: object) -> bool:
    from jinja2 import Undefined

    return isinstance(value, Undefined)


def _refuse(value: object) -> NoReturn:
    str(value)  # a strict Undefined raises RenderError by itself
    raise RenderError("undefined-variable", "the expression has no value")


class _Environment(Mapping[str, str]):
    """The environment, as `env`: a variable that is not set is its own kind of fault."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _modern(text: str) -> str:
    return _OLDER.sub(r"{{ env.\1 }}", text) if "${{" in text else text


@lru_cache(maxsize=512)
def _compiled(text: str) -> Template:
    return _from_source(_modern(text))


@lru_cache(maxsize=512)
def _expression(expression: str) -> Template:
    return _from_source("{% set result = " + expression + " %}")


def _from_source(source: str) -> Template:
    from jinja2 import TemplateError

    try:
        return _environment().from_string(source)
    except (TemplateError, RecursionError) as error:
        raise _syntax(error) from None


def _syntax(error: Exception) -> RenderError:
    return RenderError("bad-template", f"not a template that can be read: {error}; {LITERAL_HINT}")


@cache
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Missing(StrictUndefined):
        """Says in our words which name is missing."""

        def _fail_with_undefined_error(self, *_args: Any, **_kwargs: Any) -> NoReturn:
            name = str(self._undefined_name)
            if isinstance(self._undefined_obj, _Environment):
                raise RenderError("unset-environment", f"environment variable '{name}' is not set", name)
            raise RenderError("undefined-variable", f"'{name}' is not defined; {LITERAL_HINT}", name)

        __str__ = __iter__ = __len__ = __bool__ = __eq__ = __ne__ = __hash__ = _fail_with_undefined_error
        __getattr__ = __getitem__ = __call__ = __add__ = __radd__ = __int__ = __float__ = _fail_with_undefined_error

    return ImmutableSandboxedEnvironment(
        undefined=Missing,
        autoescape=False,
        keep_trailing_newline=True,
        comment_start_string=_NEVER,
        comment_end_string=_NEVER[::-1],
    )
