"""Jinja as templates here use it: its sandbox, its parser, and what is not defined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import ChainableUndefined, StrictUndefined, Undefined, nodes
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentv.model.values.formatting import plural
from agentv.templating.rendering import LITERAL_HINT, Environment, RenderError, refuse_operation


class AloneParser(Parser):
    """A parser of templates that cannot include other files."""

    def _refused(self) -> NoReturn:
        self.fail(f"a template cannot include other templates with '{{% {self.stream.current.value} %}}'")

    parse_include = parse_import = parse_from = parse_extends = _refused


class JinjaParser(AloneParser):
    """Reads a template as Jinja does."""

    def parse_concat(self) -> nodes.Expr:
        """A sum with `~`, whose parts are joined as placeholders show them."""
        node = super().parse_concat()
        return call("~", *node.nodes) if isinstance(node, nodes.Concat) else node


def call(name: str, node: Any, *given: nodes.Expr) -> nodes.Filter:
    """What one of our own functions gives for values: a filter, under a name that no template can write."""
    return nodes.Filter(node, f"\x00{name}", list(given), [], None, None, lineno=node.lineno)


def functions(named: Mapping[str, Any]) -> dict[str, Any]:
    """The filters that `call` calls."""
    return {f"\x00{name}": function for name, function in named.items()}


class MissingVariable(StrictUndefined):
    """Says in our words which name is missing."""

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
    """Empty text, and so is what is in it; a variable of the environment must be set all the same."""

    def __str__(self) -> str:
        _refuse_unset(self)
        return ""


def _refuse_unset(value: Undefined) -> None:
    if isinstance(value._undefined_obj, Environment):  # noqa: SLF001  # which Jinja offers to subclasses
        name = str(value._undefined_name)  # noqa: SLF001
        raise RenderError("unset-environment", f"environment variable '{name}' is not set", name)


class Sandbox(ImmutableSandboxedEnvironment):
    """Looks into mappings first: `order.items` is the variable's own key, and not a method of Python's."""

    intercepted_binops = frozenset({"**", "*", "+"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """As Jinja, within limits."""
        refuse_operation(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key, otherwise an attribute."""
        return obj[attribute] if isinstance(obj, Mapping) and attribute in obj else super().getattr(obj, attribute)
