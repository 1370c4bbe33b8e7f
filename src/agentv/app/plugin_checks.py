"""Checks of the objects that plugins register, made when a plugin is loaded and before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.schema import AuthoredSettings
from agentv.authoring.fields.spellings import TARGET
from agentv.registry.extensions import ASSERTIONS, EXPORT_FORMATS, PROVIDERS
from agentv.registry.fields import Declared, DeclaredAssertion
from agentv.registry.types import ProviderSettings
from agentv.user_code.plugins import BadPluginError


def check(kind: str, value: object) -> None:
    """Raise if an object is not a plugin of its kind.

    Raises:
        BadPluginError: with the reason and the line of the definition.
    """
    for why in _CHECKS[kind](value):
        file, line = _defined(value)
        raise BadPluginError(f"{_named(value)} {why}", file, line)


def _named(value: object) -> str:
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}:{value.__qualname__}"
    return f"the {type(value).__name__} that it names"


def _defined(value: object) -> tuple[str | None, int | None]:
    """Return the file and line of a class or function, or (None, None) if it has no source."""
    try:
        file = inspect.getsourcefile(value)  # type: ignore[arg-type]  # other objects raise TypeError
        return file, inspect.findsource(value)[1] + 1  # type: ignore[arg-type]
    except (OSError, TypeError, IndexError):
        return None, None


def _assertion(value: object) -> Iterator[str]:
    yield from _declared(value, DeclaredAssertion)
    assert isinstance(value, type)  # noqa: S101  # _declared checks it
    grade = "choose" if getattr(value, "compares", False) is True else "grade"
    if not callable(getattr(value, grade, None)):
        yield f"must have a method '{grade}'"
    taken = sorted(shape_of(value).rules.keys() & shape_of(AuthoredSettings).rules.keys())
    if taken:
        yield f"has an option '{taken[0]}', which every assertion takes already"


def _target(value: object) -> Iterator[str]:
    yield from _declared(value, ProviderSettings)
    assert isinstance(value, type)  # noqa: S101
    if getattr(value, "connect", None) is ProviderSettings.connect:
        yield "must have a method 'connect'"
    taken = sorted(shape_of(value).rules.keys() & (TARGET.known | {"config", "x-"}))
    if taken:
        yield f"has a setting '{taken[0]}', which every target takes already"


def _declared(value: object, base: type[Declared]) -> Iterator[str]:
    if not isinstance(value, type):
        yield f"must be a class that derives from agentv.plugins.{base.__name__}"
        return
    if not issubclass(value, base):
        yield f"must derive from agentv.plugins.{base.__name__}"
    made = getattr(value, "__struct_config__", None) or getattr(value, "__dataclass_params__", None)
    if made is None or not made.frozen:
        yield "must be a frozen dataclass: write @dataclass(frozen=True, slots=True) above it"
    try:
        names = shape_of(value).names
    except (TypeError, NameError) as error:  # an unsupported type or an undefined name in an annotation
        yield f"has an option that cannot be declared: {error}"
        return
    short = getattr(value, "short", None)
    if short == Declared.short and "short" not in _own_names(value) and short not in names:
        yield "has no option 'value' for the short form: name another one with short: ClassVar[str | None] = …, or None"
    elif short is not None and (not isinstance(short, str) or short.rstrip("_") not in names):
        yield f"says short = {short!r}, which is not one of its options"


def _own_names(cls: type) -> set[str]:
    return {name for one in cls.__mro__ if one.__module__.partition(".")[0] != "agentv" for name in vars(one)}


def _report(value: object) -> Iterator[str]:
    if not callable(value) or isinstance(value, type):
        yield "must be a function that takes an agentv.plugins.RunData and returns text"
        return
    try:
        inspect.signature(value).bind(None)
    except (TypeError, ValueError):
        yield "must be a function that can be called with one argument"
    if inspect.iscoroutinefunction(value):
        yield "must be a plain function, not async"


_CHECKS: Mapping[str, Callable[[object], Iterator[str]]] = {
    ASSERTIONS: _assertion,
    PROVIDERS: _target,
    EXPORT_FORMATS: _report,
}
