"""`{{ name }}` placeholders: Jinja2 in its sandbox, rendered once, without comments (SPEC section 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.values import EMPTY, Json
from agentv.templating.limits import (
    PLACEHOLDERS,
    Environment,
    MissingItemError,
    joined,
    limited,
    refuse_large,
    refuse_long,
    refuse_operation,
)
from agentv.templating.limits import RenderError as RenderError

if TYPE_CHECKING:
    from jinja2 import Template, Undefined, nodes
    from jinja2.compiler import Frame
    from jinja2.nodes import Template as TemplateNode
    from jinja2.runtime import Context
    from jinja2.sandbox import SandboxedEnvironment

_OLDER = lazy_pattern(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ALONE = lazy_pattern(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
_NAMED = lazy_pattern(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_OTHERS = lazy_pattern(r"include|import|extends")
_WORDS = ("true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "elif")
_RESERVED = frozenset((*_WORDS, "self", "super", "loop", "caller", "varargs", "kwargs", "env", "vars"))
"""Names that mean something to Jinja, or to us, whatever a variable of that name holds."""

GLOBAL_NAMES = frozenset({"range", "dict", "lipsum", "cycler", "joiner", "namespace"})
"""Names that Jinja defines."""

_Compiled: TypeAlias = "tuple[Template, bool]"
"""A template, and whether it has loops or macros."""

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

LITERAL_HINT = "for literal braces, write {{ '{{' }}"


Around: TypeAlias = Callable[[frozenset[str], str], str]
"""The names that a placeholder reads, and the text that it comes to → the text that is shown."""

_AROUND = "\x00around"
"""A name that no template can write."""


UNREADABLE = "not a valid template"
"""How the message begins where the syntax is wrong, whatever the variables are."""


@dataclass(frozen=True, slots=True)
class Language:
    """What placeholders are written in.

    Attributes:
        nunjucks: values, conditions and filters are those of Nunjucks, as promptfoo renders them.
        missing_empty: a variable that is not set is empty text, and so is what is in it.
    """

    nunjucks: bool = False
    missing_empty: bool = False


JINJA = Language()


@dataclass(frozen=True, slots=True)
class Scope:
    """What placeholders can see: variables by name, all of them as `vars`, and the environment as `env`.

    `names` are further things to see, such as `prompt`; they hide variables of the same name, not `vars.prompt`.
    `closed`: the text is data, which may not read the environment. `language`: what the text is written in.
    """

    vars: Mapping[str, Json]
    env: Mapping[str, str]
    names: Mapping[str, Json] = field(default=EMPTY)
    closed: bool = False
    language: Language = JINJA


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
    alone = None if scope.language.nunjucks else _ALONE.fullmatch(text)  # which knows text alone
    if alone:
        if not scope.language.missing_empty:
            _refuse_undefined(alone[1].strip(), scope)
        return _run(_expression(alone[1].strip(), scope.language), scope, native=True)
    filled = _filled(text, scope)
    # `$` in front is the older spelling of an environment variable, which _compiled translates
    return filled if filled is not None else _run(_compiled(text, scope.language), scope, native=False)


def render_text(text: str, scope: Scope) -> str:
    """The text with its placeholders filled in, always as text.

    Raises:
        RenderError: as `render`.
    """
    if not has_placeholder(text):
        return text
    filled = _filled(text, scope)
    return filled if filled is not None else str(_run(_compiled(text, scope.language), scope, native=False))


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
    names: dict[str, Any] = {**scope.names, _AROUND: around}
    return str(_run(_surrounding(text), Scope(scope.vars, scope.env, names), native=False))


def evaluate(expression: str, scope: Scope) -> Json:
    """The value of a bare expression, as between braces.

    Raises:
        RenderError: as `render`.
    """
    try:
        return _run(_expression(expression, scope.language), scope, native=True)
    except RenderError as error:  # there are no braces whose meaning could be in doubt
        raise RenderError(error.code, error.message.removesuffix(f"; {LITERAL_HINT}"), error.name, error.line) from None


def undeclared(text: str, language: Language = JINJA) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        RenderError: its syntax is wrong.
    """
    names = _plain_names(text)
    if names is not None:
        return names
    from jinja2 import TemplateError, meta

    try:
        return frozenset(meta.find_undeclared_variables(_tree(_modern(text), language)))
    except (TemplateError, SyntaxError, *_RAISED) as error:
        raise _syntax(error) from None


def _run(compiled: _Compiled, scope: Scope, *, native: bool) -> Json:
    from jinja2 import TemplateError

    template, repeats = compiled

    names: dict[str, Any] = {
        **scope.vars,
        **scope.names,
        "vars": scope.vars,
        "env": Environment(scope.env, closed=scope.closed),
    }
    try:
        with limited() if repeats else nullcontext():
            if native:
                context = template.new_context(names)
                list(template.root_render_func(context))
                result = context.vars["result"]
                refuse_large(result)
                return _json(result)
            return joined(template.root_render_func(template.new_context(names)))
    except MissingItemError as error:
        raise error.of(names) from None
    except TemplateError as error:
        raise RenderError("bad-template", f"cannot render: {error}") from None
    except _RAISED as error:
        raise RenderError("bad-template", f"cannot render: {type(error).__name__}: {error}") from None


def _filled(text: str, scope: Scope) -> str | None:
    """The text, where all of its placeholders are plain names: most are, and a template takes 300 µs to compile."""
    nunjucks = scope.language.nunjucks
    if nunjucks and "{#" in text:
        return None
    pieces = _NAMED.split(text)
    # a brace or a dollar in front of a placeholder is part of another one: `{{{ a }}`, `${{ a }}`
    if any("{{" in one or "{%" in one or one.endswith(("$", "{")) or "\r" in one for one in pieces[::2]):
        return None
    if not _RESERVED.isdisjoint(pieces[1::2]):
        return None
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        value = scope.names.get(name, scope.vars.get(name, _is_undefined))
        if nunjucks and not isinstance(value, str):
            return None  # other values are shown as JavaScript does
        if not isinstance(value, str | int | float | None | list | dict):
            if not scope.language.missing_empty:
                _refuse_undefined(name, scope)
            return None  # or not defined, which the template says better
        pieces[place] = str(_shown(value))
    return "".join(pieces)


def _refuse_undefined(name: str, scope: Scope) -> None:
    """Refuse a lone name that is not defined as its template would, which takes long to compile."""
    known = name in scope.vars or name in scope.names or name in _RESERVED or name in GLOBAL_NAMES
    if not known and name.isidentifier() and name.isascii():
        raise RenderError("undefined-variable", f"'{name}' is not defined; {LITERAL_HINT}", name)


def _plain_names(text: str) -> frozenset[str] | None:
    """The names that a text reads, where all of its placeholders are plain ones; as `_filled`, without a template."""
    pieces = _NAMED.split(text)
    if any("{{" in one or "{%" in one or one.endswith(("$", "{")) for one in pieces[::2]):
        return None
    names = frozenset(pieces[1::2])
    return None if names & _RESERVED else names


def _json(value: Any) -> Json:
    """What an expression came to, as plain data to its innermost part."""
    if value is None or isinstance(value, str | int | float):
        return value
    if _is_undefined(value):
        return str(value)  # one that must be defined says so
    if isinstance(value, Environment) or callable(value):
        raise RenderError("bad-template", f"the expression must be a value, found {_kind(value)}")
    if isinstance(value, Mapping):
        return {str(key): _json(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [_json(one) for one in value]  # a list, or what a filter such as `map` makes
    raise RenderError("bad-template", f"the expression must be a value, found {_kind(value)}")


def _kind(value: object) -> str:
    return "the whole environment" if isinstance(value, Environment) else f"a {type(value).__name__}"


def _shown(value: Any) -> Any:
    """Every value on its way into a text: what has no text of its own is refused."""
    if isinstance(value, Environment) or (callable(value) and not _is_undefined(value)):
        raise RenderError("bad-template", f"the expression must be a value, found {_kind(value)}")
    if value is None or isinstance(value, bool):
        return _SPELLED[value]
    if isinstance(value, Mapping | list | tuple):
        refuse_large(value)
        return json.dumps(_json(value), ensure_ascii=False)
    if isinstance(value, str):
        refuse_long(len(value))
    return value


_SPELLED: Mapping[bool | None, str] = {None: "null", True: "true", False: "false"}
"""As YAML and JSON write them, and as texts are compared with them: a prompt is not Python."""


_PLAIN = frozenset({"", *_SPELLED.values()})
"""What an empty value, nothing and yes or no are shown as: no text of anybody's."""


def _is_undefined(value: object) -> bool:
    from jinja2 import Undefined

    return isinstance(value, Undefined)


def _modern(text: str) -> str:
    return _OLDER.sub(r"{{ env.\1 }}", text) if "${{" in text else text


@lru_cache(maxsize=512)
def _compiled(text: str, language: Language = JINJA) -> _Compiled:
    return _from_source(_modern(text), language)


@lru_cache(maxsize=64)
def _surrounding(text: str) -> _Compiled:
    """As `_compiled`, with a filter at every placeholder that reads a name."""
    from jinja2 import TemplateError, nodes

    try:
        tree = _tree(_modern(text))
        for output in tree.find_all(nodes.Output):
            output.nodes = [_surrounded(node) for node in output.nodes]
        return _environment().from_string(tree), _repeats(tree)
    except (TemplateError, SyntaxError, *_RAISED) as error:
        raise _syntax(error) from None


def _surrounded(node: Any) -> Any:
    from jinja2 import nodes

    named = {found.name for found in (*node.find_all(nodes.Name), *([node] if isinstance(node, nodes.Name) else ()))}
    if not named or isinstance(node, nodes.TemplateData):
        return node
    read = nodes.Const(tuple(sorted(named)), lineno=node.lineno)
    return nodes.Filter(node, _AROUND, [read], [], None, None, lineno=node.lineno)


@lru_cache(maxsize=512)
def _expression(expression: str, language: Language = JINJA) -> _Compiled:
    return _from_source("{% set result = " + expression + " %}", language)


def _from_source(source: str, language: Language) -> _Compiled:
    from jinja2 import TemplateError

    if source.count("{{") + source.count("{%") > PLACEHOLDERS:
        raise RenderError("bad-template", f"{UNREADABLE}: it has more than {PLACEHOLDERS:,} placeholders")
    try:
        tree = _tree(source, language)
        repeats = _repeats(tree)  # before Jinja puts its own things into the tree
        return _environment(language).from_string(tree), repeats
    except (TemplateError, SyntaxError, *_RAISED) as error:  # Jinja compiles to Python, whose limits are its own
        raise _syntax(error) from None


def _repeats(tree: TemplateNode) -> bool:
    """Whether a template has loops or macros, so that it may run for any time."""
    from jinja2 import nodes

    return tree.find((nodes.For, nodes.Macro)) is not None  # type: ignore[arg-type]  # as `find_all` takes them


def _tree(source: str, language: Language = JINJA) -> TemplateNode:
    """The syntax tree of a template. Text from files cannot include other files."""
    from jinja2 import nodes

    if language.nunjucks:
        from agentv.templating.nunjucks import jinja_source, jinja_tree  # few templates are

        tree = jinja_tree(_environment(language).parse(jinja_source(source)))
    else:
        tree = _environment(language).parse(source)
    if _OTHERS.search(source):  # most have no such word, and need not be walked through
        for tag in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            name = "from" if isinstance(tag, nodes.FromImport) else type(tag).__name__.lower()
            message = f"a template cannot include other templates with '{{% {name} %}}'"
            raise RenderError("bad-template", f"{UNREADABLE}: {message}; {LITERAL_HINT}", line=tag.lineno)
    return tree


def _syntax(error: Exception) -> RenderError:
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    reason = "a number has too many digits" if isinstance(error, ValueError) else reason
    reason = error.msg if isinstance(error, SyntaxError) else reason
    line = getattr(error, "lineno", None)
    return RenderError("bad-template", f"{UNREADABLE}: {reason}; {LITERAL_HINT}", line=line)


@cache
def _undefined(*, empty: bool) -> type[Undefined]:
    """What a variable is that is not set."""
    from jinja2 import ChainableUndefined, StrictUndefined

    class MissingVariable(StrictUndefined):
        """Says in our words which name is missing."""

        def _fail_with_undefined_error(self, *_args: Any, **_kwargs: Any) -> NoReturn:
            name = str(self._undefined_name)
            if isinstance(self._undefined_obj, Environment):
                raise RenderError("unset-environment", f"environment variable '{name}' is not set", name)
            if isinstance(self._undefined_obj, list | tuple) and isinstance(self._undefined_name, int):
                raise MissingItemError(self._undefined_obj, self._undefined_name)
            raise RenderError("undefined-variable", f"'{name}' is not defined; {LITERAL_HINT}", name)

        __str__ = __iter__ = __len__ = __bool__ = __eq__ = __ne__ = __hash__ = _fail_with_undefined_error
        __getattr__ = __getitem__ = __call__ = __add__ = __radd__ = __int__ = __float__ = _fail_with_undefined_error

    class EmptyVariable(ChainableUndefined):
        """Empty text, and so is what is in it; a variable of the environment must be set all the same."""

        def __str__(self) -> str:
            if isinstance(self._undefined_obj, Environment):
                name = str(self._undefined_name)
                raise RenderError("unset-environment", f"environment variable '{name}' is not set", name)
            return ""

    return EmptyVariable if empty else MissingVariable


@cache
def _environment(language: Language = JINJA) -> SandboxedEnvironment:
    from jinja2 import pass_context
    from jinja2.compiler import CodeGenerator
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Code(CodeGenerator):
        """Texts that `~` joins are not longer than they may be."""

        def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802  # as Jinja calls it
            self.write("environment.joined(map(str, [")
            for one in node.nodes:
                self.visit(one, frame)
                self.write(", ")
            self.write("]))")

    class Sandbox(ImmutableSandboxedEnvironment):
        """Looks into mappings first: `order.items` is the variable's own key, and not a method of Python's."""

        code_generator_class = Code
        joined = staticmethod(joined)
        intercepted_binops = frozenset({"**", "*", "+"})

        def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
            refuse_operation(operator, left, right)
            return super().call_binop(context, operator, left, right)

        def getattr(self, obj: Any, attribute: str) -> Any:
            return obj[attribute] if isinstance(obj, Mapping) and attribute in obj else super().getattr(obj, attribute)

    made = Sandbox(
        undefined=_undefined(empty=language.missing_empty),
        finalize=_shown,
        autoescape=False,
        keep_trailing_newline=True,
        comment_start_string=_NEVER,
        comment_end_string=_NEVER[::-1],
    )
    if language.nunjucks:
        from agentv.templating.nunjucks import become_nunjucks

        become_nunjucks(made)
    made.filters[_AROUND] = pass_context(_around)
    return made


def _around(context: Context, value: Any, names: tuple[str, ...]) -> Any:
    """What a placeholder comes to, as whoever asked for the rendering wants it shown."""
    if _is_undefined(value):
        return value  # its own message says what is missing
    shown = _shown(value)
    return context[_AROUND](frozenset(names), shown) if isinstance(shown, str) and shown not in _PLAIN else shown
