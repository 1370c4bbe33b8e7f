"""Options of targets whose model calls can pass the gateway: shared by agents and by programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import get_args

from agentv.model.suite.gateway import DROP, ModelProtocol
from agentv.registry.fields import Issue

PROTOCOLS: tuple[ModelProtocol, ...] = get_args(ModelProtocol)

_STATUS = re.compile(r"[45]\d\d")


def fault_issues(faults: Mapping[str, float]) -> Iterable[Issue]:
    """What is wrong with `faults`."""
    for name in faults:
        if name != DROP and _STATUS.fullmatch(name) is None:
            message = f"'{name}' is no fault: use an HTTP status from 400 to 599, or '{DROP}'"
            yield Issue(("faults", name), message, "unknown-key")
    if sum(faults.values()) > 1:
        yield Issue(("faults",), f"the shares of 'faults' must not exceed 1 together, found {sum(faults.values()):g}")


def gateway_issues(gateway: bool | ModelProtocol | None, options: Mapping[str, object]) -> Iterable[Issue]:
    """What is wrong with options that take effect only where model calls pass the gateway.

    Args:
        gateway: as the target says.
        options: name of an option → its value.
    """
    if gateway is True:
        yield Issue(("gateway",), f"'gateway' needs the protocol of the agent's model: {', '.join(PROTOCOLS)}")
    for name, value in options.items() if isinstance(gateway, bool) or gateway is None else ():
        if value:
            hint = f"add 'gateway' with the protocol of the agent's model: {', '.join(PROTOCOLS)}"
            yield Issue((name,), f"'{name}' has no effect without the gateway", "no-effect", hint)
