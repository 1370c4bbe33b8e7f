"""`{{ name }}` placeholders: sandboxed Jinja2, rendered once, without comments (SPEC section 6)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from agentv.model.values.values import Json, lazy_pattern
from agentv.templating.rendering import JINJA, LITERAL_HINT, UNREADABLE, Language, RenderError, Scope, plain, shown

__all__ = ["GLOBAL_NAMES", "JINJA", "LITERAL_HINT", "UNREADABLE", "Language", "RenderError", "Scope"]
__all__ += ["environment_names", "evaluate", "has_placeholder", "render", "render_around", "render_text", "undeclared"]

_ENV_PLACEHOLDER = lazy_pattern(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ALONE = lazy_pattern(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
_NAMED = lazy_pattern(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_WORDS = ("true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "elif")
_RESERVED = frozenset((*_WORDS, "null", "self", "super", "loop", "caller", "varargs", "kwargs", "env", "vars"))
"""Names with a fixed meaning in templates, which variables do not override."""

GLOBAL_NAMES = frozenset({"range", "dict", "lipsum", "cycler", "joiner", "namespace"})
"""Names that Jinja defines."""

_MISSING = object()

Around: TypeAlias = Callable[[frozenset[str], str], str]
"""(names that a placeholder reads, its text) → the text to show instead."""


def has_placeholder(text: str) -> bool:
    """Whether rendering may change a text: it has a placeholder, a tag, or a Nunjucks comment."""
    return "{{" in text or "{%" in text or "{#" in text


def environment_names(text: str) -> tuple[str, ...]:
    """The environment variables that a text names in the older spelling `${{ NAME }}`."""
    return tuple(_ENV_PLACEHOLDER.findall(text))


def render(text: str, scope: Scope) -> Json:
    """The text with its placeholders filled in. A lone placeholder keeps the type of its value.

    Raises:
        RenderError: a name is not defined, an environment variable is not set, or the template is invalid.
    """
    alone = None if scope.language.nunjucks else _ALONE.fullmatch(text)  # Nunjucks always renders to text
    if not alone:
        return render_text(text, scope)
    values = _values(_pieces(text, scope.language), scope)
    return plain(values[0]) if values else _run(alone[1].strip(), scope)


def render_text(text: str, scope: Scope) -> str:
    """The text with its placeholders filled in, always as text.

    Raises:
        RenderError: as for `render`.
    """
    if not has_placeholder(text):
        return text
    pieces = _pieces(text, scope.language)
    values = _values(pieces, scope)
    if pieces is None or values is None:
        from agentv.templating import templates

        return str(templates.run(templates.compiled(_with_env_names(text), scope.language), scope))
    pieces[1::2] = map(shown, values)
    return "".join(pieces)


def render_around(text: str, scope: Scope, around: Around) -> str:
    """Render like `render_text`, but pass the text of every placeholder through `around`.

    Values that are not text, such as numbers, and placeholders without names, such as `{{ '{{' }}`, are not passed.

    Args:
        text: a template.
        scope: values that placeholders can use.
        around: (names that a placeholder reads, its text) → the text to show instead.

    Raises:
        RenderError: as for `render`.
    """
    if not has_placeholder(text):
        return text
    from agentv.templating import templates

    names: dict[str, Any] = {**scope.names, templates.AROUND: around}
    compiled = templates.compiled(_with_env_names(text), JINJA, surrounded=True)
    return str(templates.run(compiled, Scope(scope.vars, scope.env, names)))


def evaluate(expression: str, scope: Scope) -> Json:
    """The value of an expression without braces.

    Raises:
        RenderError: as for `render`.
    """
    try:
        return _run(expression, scope)
    except RenderError as error:  # without braces, the hint on literal braces does not apply
        raise RenderError(error.code, error.message.removesuffix(f"; {LITERAL_HINT}"), error.name, error.line) from None


def undeclared(text: str, language: Language = JINJA) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        RenderError: the template is invalid.
    """
    pieces = _pieces(text, language)
    if pieces is not None:
        return frozenset(pieces[1::2])
    from agentv.templating import templates

    return templates.undeclared(_with_env_names(text), language)


def _run(expression: str, scope: Scope) -> Json:
    from agentv.templating import templates

    source = "{% set result = " + expression + " %}"
    return templates.run(templates.compiled(source, scope.language), scope, native=True)


def _with_env_names(text: str) -> str:
    return _ENV_PLACEHOLDER.sub(r"{{ env.\1 }}", text) if "${{" in text else text


def _pieces(text: str, language: Language) -> list[str] | None:
    """The literal text and the placeholders' names, alternating, or None if the text must be compiled.

    This avoids compiling a template, which takes 300 µs, if all placeholders are plain names. A brace or a dollar sign
    before a placeholder makes it another kind: `{{{ a }}`, `${{ a }}`.
    """
    pieces = _NAMED.split(text)
    others = language.nunjucks and "{#" in text
    if others or any("{{" in one or "{%" in one or one.endswith(("$", "{")) or "\r" in one for one in pieces[::2]):
        return None
    return pieces if _RESERVED.isdisjoint(pieces[1::2]) else None


def _values(pieces: list[str] | None, scope: Scope) -> list[Json] | None:
    """The values of the plain names, or None if the template must be compiled, as some values need it to be shown."""
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
