"""Libraries that only some assertion types and providers need, installed through an extra of the package."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from agentv.registry.fields import Issue


def missing_extra(module: str, extra: str, what: str) -> Issue | None:
    """An Issue `missing-extra` where a library cannot be found; None where it can. Imports nothing.

    Args:
        module: the library's module.
        extra: the extra of this package that brings it.
        what: what requires it: "parsing SQL", "agentv view".
    """
    if _is_installed(module):
        return None
    return Issue(
        (), f"{what} requires {module}, which is not installed", "missing-extra", install_hint(extra), of_machine=True
    )


def install_hint(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'agentv[{extra}]'"


@cache
def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError):  # put into sys.modules by hand; a package around it that is not there either
        return False
