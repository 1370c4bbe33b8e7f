"""Restrictions on rows of data: they are data, and run no code (SPEC section 2)."""

from __future__ import annotations

from typing import Final

from agentv.authoring.fields.agentv.names import provider_name
from agentv.authoring.source.nodes import Node, Place, Scalar
from agentv.authoring.source.report import Report
from agentv.registry.table import Registry
from agentv.registry.types import Provider
from agentv.templating import RenderError, undeclared

UNTRUSTED: Final = "untrusted-data"
ALLOW_DATA: Final = "if you trust this data, use --trust-data, or in an eval file 'run: {trust_data: true}'"

TARGETS = frozenset({"judge", "embedder"})
"""Options of assertions that name a target."""

_HARMLESS = frozenset({"config", "threshold", "target"})
"""Options of assertions that run code which may hold what a variable of data holds."""


def refuse_data(at: Node | Place, report: Report, what: str) -> None:
    """Report something that data must not do, in the words of a message: `name code`."""
    report.error(UNTRUSTED, at, f"data must not {what}", hint=ALLOW_DATA)


def refuses_provider(name: str, providers: Registry[Provider] | None, *, alone: bool) -> bool:
    """Whether data must not name a target of this provider; see `Provider.may_stand_in_data`."""
    provider = providers.find(name) if providers is not None else None
    return provider is None or not provider.may_stand_in_data(alone=alone)


def refuses_target(node: Scalar, providers: Registry[Provider] | None, report: Report) -> bool:
    """Whether data names a target that it must not, which is then reported. A name without a colon is the project's."""
    name, colon, _ = str(node.value).partition(":")
    if not colon or not refuses_provider(provider_name(name), providers, alone=True):
        return False
    refuse_data(node, report, f"name the target '{name}:…', which could start a command or call any server")
    return True


def refuses_template(text: str, node: Node, report: Report) -> bool:
    """Whether a template out of data, which is rendered later, reads the environment; it is then reported."""
    try:
        reads = "env" in undeclared(text)
    except RenderError:
        return False  # it is reported by whoever renders it
    if reads:
        refuse_data(node, report, "read the environment")
    return reads


def fills_code(cls: type, option: str) -> bool:
    """Whether an option of an assertion is code, or an address, that a variable of data must not be a part of."""
    return bool(getattr(cls, "runs_code", False)) and option not in _HARMLESS
