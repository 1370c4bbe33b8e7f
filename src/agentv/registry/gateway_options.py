"""Options of targets whose model calls can go through the gateway: agents and programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, TypeAlias, get_args

from agentv.model.suite.tools import DROP, ModelProtocol, ModelUpstream
from agentv.registry.extensions import HOW_TO_GET, PORTS, lacking
from agentv.registry.fields import Between, Doc, Fraction, Issue, Secret, Text
from agentv.registry.types import ProviderSettings

PROTOCOLS: tuple[ModelProtocol, ...] = get_args(ModelProtocol)

Faults: TypeAlias = Annotated[
    Mapping[str, Fraction], Doc("faults for the model calls: an HTTP status or `drop` → share of the calls, 0..1")
]
UpstreamUrl: TypeAlias = Annotated[
    Text | None, Doc("base URL of the model's API behind the gateway; default: by the variable of its provider")
]
UpstreamKey: TypeAlias = Annotated[
    Text | None, Secret(), Doc("key of the model's API, for the gateway; default: by the variable of its provider")
]

Otel: TypeAlias = Annotated[
    bool | Annotated[int, Between(1, 65535)],
    Doc("receive the spans that it sends by OTLP over HTTP, which are its trace; a number: the port to listen at"),
]

_STATUS = re.compile(r"[45]\d\d")


class GatewaySettings(ProviderSettings):
    """Base of settings with options of the gateway, which each provider declares among its own fields.

    Attributes:
        gateway: protocol of the model calls; False: they do not go through the gateway; None: not set.
        faults: faults to inject into the model calls → share of the calls.
    """

    __slots__ = ()

    gateway: bool | ModelProtocol | None
    faults: Mapping[str, float]

    @property
    def model_protocol(self) -> ModelProtocol | None:
        """The protocol of its model calls; None if unknown, so that they cannot go through the gateway."""
        return self.gateway if isinstance(self.gateway, str) else None

    def upstream(self, env: Mapping[str, str]) -> ModelUpstream | None:
        """Return the API from `base_url` and `api_key`, or else from the provider's environment variables."""
        protocol = self.model_protocol
        if protocol is None or self.gateway is False:
            return None
        base_url, api_key = getattr(self, "base_url", None), getattr(self, "api_key", None)
        return ModelUpstream.from_settings(protocol, env, base_url, api_key, self.faults)

    def fault_issues(self) -> Iterable[Issue]:
        """Return the problems of `faults`."""
        for name in self.faults:
            if name != DROP and _STATUS.fullmatch(name) is None:
                message = f"'{name}' is no fault: use an HTTP status from 400 to 599, or '{DROP}'"
                yield Issue(("faults", name), message, "unknown-key")
        shares = sum(self.faults.values())
        if shares > 1:
            yield Issue(("faults",), f"the shares of 'faults' must not exceed 1 together, found {shares:g}")

    def protocol_issues(self) -> Iterable[Issue]:
        """Return the problems of the gateway's options, for a target whose protocol only `gateway` can set."""
        known = ", ".join(PROTOCOLS)
        if isinstance(self.gateway, str) and (needs := lacking(PORTS, "TrialWorks")):
            yield Issue(("gateway",), f"'gateway' {needs}", "missing-extra", HOW_TO_GET)
        if self.gateway is True:
            yield Issue(("gateway",), f"'gateway' needs the protocol of the agent's model: {known}")
        for name in ("faults", "base_url", "api_key") if not isinstance(self.gateway, str) else ():
            if getattr(self, name):
                hint = f"set 'gateway' to the protocol of the agent's model: {known}"
                yield no_effect(name, "without the gateway", hint)


def no_effect(name: str, when: str, hint: str) -> Issue:
    """Return an Issue for an option that changes nothing here."""
    return Issue((name,), f"'{name}' has no effect {when}", "no-effect", hint)
