"""Templates in both languages, compiled by Jinja and run within limits."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any, TypeAlias

from jinja2 import Template, TemplateError, Undefined, meta, nodes, pass_context
from jinja2.runtime import Context

from agentv.model.values.values import Json
from agentv.templating.jinja import EmptyVariable, JinjaParser, MissingVariable, Sandbox, call, functions
from agentv.templating.rendering import (
    LITERAL_HINT,
    PLACEHOLDERS,
    UNREADABLE,
    Environment,
    Language,
    RenderError,
    Scope,
    joined,
    limited,
    plain,
    shown,
)

Compiled: TypeAlias = tuple[Template, bool]
"""A template, and whether it has loops or macros, so that its running time must be limited."""

_NEVER = "\x00\x01"
"""A comment delimiter that occurs in no text, to turn comments off."""

AROUND = "\x00around"
"""Name of the `around` function in a surrounded template. No template can contain this name."""

_RAISED = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, NameError, RecursionError, MemoryError)
"""What an authored expression can raise: `1 / 0`, `"a" + 1`, `[][0]`, `1e999`."""


def run(compiled: Compiled, scope: Scope, *, native: bool = False) -> Json:
    """Render a template. Return its text, or the value of its variable `result` if `native`.

    Raises:
        RenderError: the template cannot be rendered.
    """
    template, repeats = compiled
    env = Environment(scope.env, closed=scope.closed)
    names: dict[str, Any] = {**scope.vars, **scope.names, "vars": scope.vars, "env": env}
    try:
        with limited() if repeats else nullcontext():
            context = template.new_context(names)
            text = joined(template.root_render_func(context))
            return plain(context.vars["result"]) if native else text
    except TemplateError as error:
        raise RenderError("bad-template", f"cannot render: {error}") from None
    except _RAISED as error:
        raise RenderError("bad-template", f"cannot render: {type(error).__name__}: {error}") from None


@lru_cache(maxsize=512)
def compiled(source: str, language: Language, *, surrounded: bool = False) -> Compiled:
    """Compile a template. If `surrounded`, placeholders that read names pass their text through the function `AROUND`.

    Raises:
        RenderError: the template is invalid.
    """
    if source.count("{{") + source.count("{%") > PLACEHOLDERS:
        raise RenderError("bad-template", f"{UNREADABLE}: it has more than {PLACEHOLDERS:,} placeholders")
    try:
        tree = _tree(source, language)
        repeats = tree.find((nodes.For, nodes.Macro)) is not None  # type: ignore[arg-type]  # `find` accepts tuples, like `find_all`
        for output in tree.find_all(nodes.Output) if surrounded else ():
            output.nodes = [_surrounded(node) for node in output.nodes]
        if language.nunjucks:
            from agentv.templating.nunjucks import as_nunjucks

            tree = as_nunjucks(tree)
        return _environment(language).from_string(tree), repeats
    except (TemplateError, SyntaxError, *_RAISED) as error:  # Jinja compiles to Python, which has limits of its own
        raise _syntax(error) from None


def undeclared(source: str, language: Language) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        RenderError: the template is invalid.
    """
    try:
        return frozenset(meta.find_undeclared_variables(_tree(source, language)))
    except (TemplateError, SyntaxError, *_RAISED) as error:
        raise _syntax(error) from None


def _syntax(error: Exception) -> RenderError:
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    reason = "a number has too many digits" if isinstance(error, ValueError) else reason
    reason = str(error.args[0]) if isinstance(error, SyntaxError | TemplateError) else reason  # without the position
    return RenderError("bad-template", f"{UNREADABLE}: {reason}; {LITERAL_HINT}", line=getattr(error, "lineno", None))


def _tree(source: str, language: Language) -> nodes.Template:
    if language.nunjucks:
        from agentv.templating.nunjucks import NunjucksParser  # imported only if needed

        return NunjucksParser(_environment(language), source).parse()
    return JinjaParser(_environment(language), source).parse()


def _surrounded(node: Any) -> Any:
    named = {found.name for found in (*node.find_all(nodes.Name), *([node] if isinstance(node, nodes.Name) else ()))}
    if not named or isinstance(node, nodes.TemplateData):
        return node
    return call("around", node, nodes.Const(tuple(sorted(named)), lineno=node.lineno))


@pass_context
def _around(context: Context, value: Any, names: tuple[str, ...]) -> Any:
    """The value of a placeholder, passed through `AROUND` unless it is a number, a boolean, null or empty."""
    if value is None or isinstance(value, int | float | Undefined):
        return value  # showing an undefined value raises its own error
    written = shown(value)
    return context[AROUND](frozenset(names), written) if written not in ("", "null", "true", "false") else written


@cache
def _environment(language: Language) -> Sandbox:
    undefined = EmptyVariable if language.missing_empty else MissingVariable
    made = Sandbox(undefined=undefined, finalize=shown, autoescape=False, keep_trailing_newline=True)
    if language.nunjucks:
        from agentv.templating.nunjucks import set_up_nunjucks

        set_up_nunjucks(made)
    else:
        made.comment_start_string, made.comment_end_string = _NEVER, _NEVER[::-1]
        made.filters |= functions({"around": _around, "~": lambda *values: joined(map(shown, values))})
    return made
