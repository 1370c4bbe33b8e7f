"""The server that runs are pushed to: `results` of a configuration, and its address and token where runs are pushed."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node, Scalar, kind_of
from agentv.errors import UsageError
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import Declared, Doc, Text
from agentv.reports.text.escaping import one_line

TOKEN_VARIABLE = "AGENTV_TOKEN"  # noqa: S105  # the name of a variable
REMOTE_VARIABLE = "AGENTV_REMOTE"

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_KEYS = ("remote", "token")
_PROJECT = lazy_pattern(r"/projects/[^/]+/?\Z")


class ResultsServer(Declared, Struct, frozen=True):
    """Where runs are pushed to."""

    remote: Annotated[Text | None, Doc("project on a team's server: https://HOST/projects/NAME")] = None
    token: Annotated[Text | None, Doc("API token, such as ${{ AGENTV_TOKEN }}; never the token itself")] = None


def check_results(node: Node, reading: Reading) -> None:
    """Report unknown keys, and an address that is wrong as it stands there.

    A variable that is not set is no mistake where nothing is pushed.
    """
    if not isinstance(node, MapNode):
        return
    for key in node.items:
        if key not in _KEYS and not key.startswith("x-"):
            reading.unknown_key(key, node, _KEYS, "'results'")
    remote = node.items.get("remote")
    if isinstance(remote, Scalar) and isinstance(remote.value, str) and "{{" not in remote.value:
        _check_address(remote.value, remote, reading)


def read_results(node: Node, reading: Reading, known: ResultsServer) -> ResultsServer:
    """The server as it is known, and what is not from this file; what is wrong is reported."""
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'results' must be a mapping, found {kind_of(node)}")
        return known
    items = {key: value for key, value in node.items.items() if key in _KEYS and getattr(known, key) is None}
    read = shape_of(ResultsServer).decode(items, node, reading, "'results'")
    if read is INVALID:
        return known
    if read.remote is not None:
        _check_address(read.remote, items["remote"], reading)
    return ResultsServer(known.remote or read.remote, known.token or read.token)


def address_problem(address: str) -> tuple[str, str] | None:
    """What is wrong with the address of a project on a server, and a hint. The text contains no password."""
    hint = "it must look like https://evals.example.org/projects/NAME"
    try:
        parts = urlsplit(address.strip())
        secret = parts.username is not None or parts.password is not None
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        secret, usable = "@" in address, None
    if secret:
        return "the address of the server contains a password", f"{hint}; tokens go into {TOKEN_VARIABLE}"
    if not usable or parts.query or parts.fragment or _PROJECT.search(parts.path) is None:
        return f"{address.strip()!r} is not the address of a project on a server", hint
    return None


def _check_address(address: str, at: Node, reading: Reading) -> None:
    problem = address_problem(address)
    if problem is not None:
        reading.report.error("bad-value", at, problem[0], hint=problem[1])


class Remote(Struct, frozen=True):
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
