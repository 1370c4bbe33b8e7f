"""`{{ name }}` placeholders: Jinja2 in its sandbox, rendered once, without comments (SPEC section 6)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from agentv.model.values.values import Json, lazy_pattern
from agentv.templating.rendering import JINJA, LITERAL_HINT, UNREADABLE, Language, RenderError, Scope, plain, shown

__all__ = ["GLOBAL_NAMES", "JINJA", "LITERAL_HINT", "UNREADABLE", "Language", "RenderError", "Scope"]
__all__ += ["environment_names", "evaluate", "has_placeholder", "render", "render_around", "render_text", "undeclared"]

_OLDER = lazy_pattern(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ALONE = lazy_pattern(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
_NAMED = lazy_pattern(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_WORDS = ("true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "elif")
_RESERVED = frozenset((*_WORDS, "null", "self", "super", "loop", "caller", "varargs", "kwargs", "env", "vars"))
"""Names that mean something to Jinja, or to us, whatever a variable of that name holds."""

GLOBAL_NAMES = frozenset({"range", "dict", "lipsum", "cycler", "joiner", "namespace"})
"""Names that Jinja defines."""

_MISSING = object()

Around: TypeAlias = Callable[[frozenset[str], str], str]
"""The names that a placeholder reads, and the text that it comes to → the text that is shown."""


def has_placeholder(text: str) -> bool:
    """Whether rendering could do anything to this text: it has a placeholder, or a comment of Nunjucks."""
    return "{{" in text or "{%" in text or "{#" in text


def environment_names(text: str) -> tuple[str, ...]:
    """The environment variables that a text names in the older spelling, `${{ NAME }}`."""
    return tuple(_OLDER.findall(text))


def render(text: str, scope: Scope) -> Json:
    """The text with its placeholders filled in; a lone placeholder keeps the type of its value.

    Raises:
        RenderError: a name is not defined, the environment lacks a variable, or the syntax is wrong.
    """
    alone = None if scope.language.nunjucks else _ALONE.fullmatch(text)  # which knows text alone
    if not alone:
        return render_text(text, scope)
    values = _values(_pieces(text, scope.language), scope)
    return plain(values[0]) if values else _run(alone[1].strip(), scope)


def render_text(text: str, scope: Scope) -> str:
    """The text with its placeholders filled in, always as text.

    Raises:
        RenderError: as `render`.
    """
    if not has_placeholder(text):
        return text
    pieces = _pieces(text, scope.language)
    values = _values(pieces, scope)
    if pieces is None or values is None:
        from agentv.templating import templates

        return str(templates.run(templates.compiled(_modern(text), scope.language), scope))
    pieces[1::2] = map(shown, values)
    return "".join(pieces)


def render_around(text: str, scope: Scope, around: Around) -> str:
    """As `render_text`, with every text that a placeholder shows handed to `around` first.

    What is no text, such as a number, and what reads no name, such as `{{ '{{' }}`, is shown as it is.

    Args:
        text: a template.
        scope: what its placeholders can see.
        around: the names that a placeholder reads, and the text that it comes to → what is shown instead.

    Raises:
        RenderError: as `render`.
    """
    if not has_placeholder(text):
        return text
    from agentv.templating import templates

    names: dict[str, Any] = {**scope.names, templates.AROUND: around}
    compiled = templates.compiled(_modern(text), JINJA, surrounded=True)
    return str(templates.run(compiled, Scope(scope.vars, scope.env, names)))


def evaluate(expression: str, scope: Scope) -> Json:
    """The value of a bare expression, as between braces.

    Raises:
        RenderError: as `render`.
    """
    try:
        return _run(expression, scope)
    except RenderError as error:  # there are no braces whose meaning could be in doubt
        raise RenderError(error.code, error.message.removesuffix(f"; {LITERAL_HINT}"), error.name, error.line) from None


def undeclared(text: str, language: Language = JINJA) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        RenderError: its syntax is wrong.
    """
    pieces = _pieces(text, language)
    if pieces is not None:
        return frozenset(pieces[1::2])
    from agentv.templating import templates

    return templates.undeclared(_modern(text), language)


def _run(expression: str, scope: Scope) -> Json:
    from agentv.templating import templates

    source = "{% set result = " + expression + " %}"
    return templates.run(templates.compiled(source, scope.language), scope, native=True)


def _modern(text: str) -> str:
    return _OLDER.sub(r"{{ env.\1 }}", text) if "${{" in text else text


def _pieces(text: str, language: Language) -> list[str] | None:
    """The text and the names in its placeholders by turns, if all are plain names: a template takes 300 µs to compile.

    A brace or a dollar in front of a placeholder is part of another one: `{{{ a }}`, `${{ a }}`.
    """
    pieces = _NAMED.split(text)
    others = language.nunjucks and "{#" in text
    if others or any("{{" in one or "{%" in one or one.endswith(("$", "{")) or "\r" in one for one in pieces[::2]):
        return None
    return pieces if _RESERVED.isdisjoint(pieces[1::2]) else None


def _values(pieces: list[str] | None, scope: Scope) -> list[Json] | None:
    """The values of the plain names; None if a template must be compiled to show them, as JavaScript does."""
    if pieces is None:
        return None
    values = []
    for name in pieces[1::2]:
        value = scope.names.get(name, scope.vars.get(name, _MISSING))
        if value is _MISSING and not scope.language.missing_empty and name not in GLOBAL_NAMES:
            raise RenderError("undefined-variable", f"'{name}' is not defined; {LITERAL_HINT}", name)
        if not isinstance(value, str if scope.language.nunjucks else str | int | float | None | list | dict):
            return None
        values.append(value)
    return values
