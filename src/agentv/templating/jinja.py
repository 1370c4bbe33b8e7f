"""Jinja's sandbox, parser and undefined values, adapted for our templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import ChainableUndefined, StrictUndefined, Undefined, nodes
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentv.model.values.formatting import plural
from agentv.templating.rendering import LITERAL_HINT, Environment, RenderError, refuse_operation


class NoIncludesParser(Parser):
    """A parser for templates that cannot include other files."""

    def _refused(self) -> NoReturn:
        self.fail(f"a template cannot include other templates with '{{% {self.stream.current.value} %}}'")

    parse_include = parse_import = parse_from = parse_extends = _refused


class JinjaParser(NoIncludesParser):
    """A parser for Jinja templates."""

    def parse_concat(self) -> nodes.Expr:
        """Parse a concatenation with `~`, whose parts are joined as placeholders show them."""
        node = super().parse_concat()
        return call("~", *node.nodes) if isinstance(node, nodes.Concat) else node


def call(name: str, node: Any, *given: nodes.Expr) -> nodes.Filter:
    """A call of one of our own functions, as a filter with a name that no template can contain."""
    return nodes.Filter(node, f"\x00{name}", list(given), [], None, None, lineno=node.lineno)


def functions(named: Mapping[str, Any]) -> dict[str, Any]:
    """The functions as filters, under the names that `call` uses."""
    return {f"\x00{name}": function for name, function in named.items()}


class MissingVariable(StrictUndefined):
    """An undefined value that raises RenderError with the missing name when it is used."""

    def _fail_with_undefined_error(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        name = str(self._undefined_name)
        _refuse_unset(self)
        if isinstance(self._undefined_obj, list | tuple) and name.lstrip("-").isdecimal():
            message = f"there is no item {name}: the list has {plural(len(self._undefined_obj), 'item')}"
            raise RenderError("undefined-variable", message)
        raise RenderError("undefined-variable", f"'{name}' is not defined; {LITERAL_HINT}", name)

    __str__ = __iter__ = __len__ = __bool__ = __eq__ = __ne__ = __hash__ = _fail_with_undefined_error
    __getattr__ = __getitem__ = __call__ = __add__ = __radd__ = __int__ = __float__ = _fail_with_undefined_error


class EmptyVariable(ChainableUndefined):
    """An undefined value that is empty text, as is anything in it. Environment variables must still be set."""

    def __str__(self) -> str:
        _refuse_unset(self)
        return ""


def _refuse_unset(value: Undefined) -> None:
    if isinstance(value._undefined_obj, Environment):  # noqa: SLF001  # Jinja documents it for subclasses
        name = str(value._undefined_name)  # noqa: SLF001
        raise RenderError("unset-environment", f"environment variable '{name}' is not set", name)


class Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox in which a mapping's key hides Python's methods: `order.items` is the key `items`."""

    intercepted_binops = frozenset({"**", "*", "+"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation, within limits."""
        refuse_operation(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The value of a mapping's key, or else the attribute."""
        return obj[attribute] if isinstance(obj, Mapping) and attribute in obj else super().getattr(obj, attribute)
