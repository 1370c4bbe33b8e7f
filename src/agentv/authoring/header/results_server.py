"""`results` of a configuration: the server that runs are pushed to. Its values are read only where runs are pushed."""

from __future__ import annotations

from typing import Annotated

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node, kind_of
from agentv.lazy_dataclass import dataclass
from agentv.registry.fields import Declared, Doc, Text

_KEYS = ("remote", "token")


@dataclass(frozen=True, slots=True)
class ResultsServer(Declared):
    """Where runs are pushed to."""

    remote: Annotated[Text | None, Doc("project on a team's server: https://HOST/projects/NAME")] = None
    token: Annotated[Text | None, Doc("API token, such as ${{ AGENTV_TOKEN }}; never the token itself")] = None


def check_results(node: Node, reading: Reading) -> None:
    """Report unknown keys. A variable that is not set is no mistake where nothing is pushed."""
    if not isinstance(node, MapNode):
        return
    for key in node.items:
        if key not in _KEYS and not key.startswith("x-"):
            reading.unknown_key(key, node, _KEYS, "'results'")


def read_results(node: Node, reading: Reading, known: ResultsServer) -> ResultsServer:
    """The server as it is known, and what is not from this file; what is wrong is reported."""
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'results' must be a mapping, found {kind_of(node)}")
        return known
    items = {key: value for key, value in node.items.items() if key in _KEYS and getattr(known, key) is None}
    read = shape_of(ResultsServer).decode(items, node, reading, "'results'")
    return known if read is INVALID else ResultsServer(known.remote or read.remote, known.token or read.token)
