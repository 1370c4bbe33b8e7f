"""The server that runs are pushed to: its address and token."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from agentv.errors import UsageError
from agentv.extensions.team.push.results_server import TOKEN_VARIABLE, address_problem
from agentv.reports.text.escaping import one_line

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Remote:
    """A project on a server.

    Attributes:
        address: such as `https://evals.example.org/projects/support`.
        token: never shown.
    """

    address: str
    token: str

    @classmethod
    def of(cls, address: str, token: str, or_else: str = "") -> Remote:
        """A checked address and token. `or_else` ends the hint where there is no token.

        Raises:
            UsageError: they cannot be used; the text never contains the token.
        """
        problem = address_problem(one_line(address))
        if problem is not None:
            raise UsageError(*problem)
        if not token.strip() or not token.strip().isascii() or len(token.split()) != 1:
            raise UsageError(
                "there is no token for the server"
                if not token.strip()
                else "the token is not one word of ASCII letters",
                f"set {TOKEN_VARIABLE}; 'agentv serve token create' makes one{or_else}",
            )
        return cls(address.strip().rstrip("/"), token.strip())

    def page_of(self, run_id: str) -> str:
        """The address of the page that shows a run."""
        return f"{self.address}/#/run/{run_id}/"

    @property
    def is_unencrypted(self) -> bool:
        """Whether the server is spoken to without TLS."""
        return urlsplit(self.address).scheme == "http"

    @property
    def is_exposed(self) -> bool:
        """Whether the token travels unencrypted over a network."""
        return is_exposed(self.address)


def is_exposed(address: str) -> bool:
    """Whether what is sent to an address travels unencrypted over a network."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK
