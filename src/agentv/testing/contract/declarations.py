"""Requirements for the options of assertion types, and for the settings of providers."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import get_type_hints

from agentv.registry.fields import Declared, Doc


def check_declaration(declared: Declared) -> None:
    """Check the class of options, and that instances can be compared and sent to another machine.

    Raises:
        AssertionError: something is wrong; says what.
    """
    cls = type(declared)
    parameters = getattr(cls, "__dataclass_params__", None)
    assert parameters is not None, f"{cls.__name__} must be a dataclass"
    assert parameters.frozen, f"{cls.__name__} must be frozen: @dataclass(frozen=True, slots=True)"
    text = (cls.__doc__ or "").strip()
    assert text, f"{cls.__name__} must have a docstring: its first line is the description"
    assert not text.startswith(f"{cls.__name__}("), f"{cls.__name__} must have a docstring of its own"
    hints = get_type_hints(cls, include_extras=True)
    for one in fields(cls):  # type: ignore[arg-type]  # it is a dataclass
        assert any(isinstance(about, Doc) for about in getattr(hints[one.name], "__metadata__", ())), (
            f"{cls.__name__}.{one.name} must say what it means: Annotated[…, Doc('…')]"
        )
    assert list(declared.validate()) == [], "these options must be right"
    assert pickle.loads(pickle.dumps(declared)) == declared, "options must survive pickle"  # noqa: S301  # our own bytes
