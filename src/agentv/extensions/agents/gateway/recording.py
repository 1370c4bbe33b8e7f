"""Recorded model calls at the gateway: what is asked of a recording, and what is kept for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv.extensions.agents.gateway.errors import NOT_AGAIN, SPENT, error_body
from agentv.model.suite.gateway import ModelProtocol
from agentv.model.values.exchange import ModelReply, ModelRequest
from agentv.work_ports import TrialExchanges

if TYPE_CHECKING:
    from aiohttp.web import Request, Response


@dataclass(slots=True)
class KeptExchange:
    """One request that is forwarded, and its reply as it is recorded.

    Attributes:
        exchanges: the recording; None: nothing is recorded.
        number: of the request in it.
    """

    exchanges: TrialExchanges | None
    number: int = 0

    @classmethod
    def begin(cls, exchanges: TrialExchanges | None, request: ModelRequest) -> KeptExchange:
        """The request has arrived."""
        return cls(exchanges, 0 if exchanges is None else exchanges.begin(request))

    def keep(self, status: int, content_type: str, body: bytes, *, complete: bool = True) -> None:
        """Record the reply."""
        if self.exchanges is not None:
            self.exchanges.keep(self.number, ModelReply(status, content_type, body, complete=complete))


def replayed_response(exchanges: TrialExchanges, request: ModelRequest, connection: Request) -> Response:
    """The recorded reply to a request that is no model call; it comes at once."""
    from aiohttp.web import Response

    found = exchanges.recorded(request)
    if not isinstance(found, ModelReply):
        protocol: ModelProtocol = request.protocol  # type: ignore[assignment]  # a route has no other
        body = error_body(protocol, SPENT, found.message)
        return Response(status=SPENT, body=body, content_type="application/json", headers=dict(NOT_AGAIN))
    if not found.complete:
        break_off(connection)
    kind = {"Content-Type": found.content_type} if found.content_type else {}
    return Response(status=found.status or SPENT, body=found.body, headers=kind)


def break_off(connection: Request) -> None:
    """Close the connection to the agent without an end of the reply."""
    if connection.transport is not None:
        connection.transport.abort()
