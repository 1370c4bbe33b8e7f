"""Model APIs behind the gateway (AGENTS.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from agentv.lazy_dataclass import dataclass

ModelProtocol = Literal["openai", "anthropic", "gemini"]
"""Protocol of a model API: OpenAI's chat completions and responses, Anthropic's messages, Gemini's generateContent."""


@dataclass(frozen=True, slots=True)
class ModelUpstream:
    """The model API that the gateway forwards the calls of one target to.

    Attributes:
        base_url: as the provider's SDK takes it: `https://api.openai.com/v1`, `https://api.anthropic.com`,
            `https://generativelanguage.googleapis.com`.
        api_key: the real key, which no agent sees.
        faults: what is injected: an HTTP status as text, such as `429`, or `drop` → share of the calls, 0..1.
    """

    protocol: ModelProtocol
    base_url: str
    api_key: str = field(repr=False)
    faults: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GatewayAccess:
    """How the agent of one trial reaches the gateway.

    Attributes:
        url: root of the gateway on loopback, without a path, as programs of the trial see it.
        token: stands in for the API key; valid until the trial ends.
        socket: path of the Unix socket on which the gateway listens as well; empty: on none.
    """

    url: str
    token: str = field(repr=False)
    socket: str = ""

    def base_url(self, protocol: ModelProtocol) -> str:
        """The base URL of a protocol, as the provider's SDK takes it."""
        return f"{self.url}/{protocol}/v1" if protocol == "openai" else f"{self.url}/{protocol}"
