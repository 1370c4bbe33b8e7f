"""A loopback server that streams given events with pauses, as model APIs do."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from doubles.http_server import HttpServer, Reply, Request

JSON = {"Content-Type": "application/json"}


def event_server(
    events: Sequence[Any],
    *,
    pause_s: float = 0.0,
    refuses: str = "",
    whole: bool = False,
    kind: str | None = "text/event-stream",
) -> HttpServer:
    """Serve the events during a `with` block.

    Args:
        events: texts as they are sent, or objects of JSON, whose `type` names the event.
        pause_s: seconds before each of them.
        refuses: key of a request that gets the status 400.
        whole: send the first event as a reply that is not streamed.
        kind: the content type of a stream; None omits the header.
    """

    def sent() -> Iterator[bytes]:
        for event in events:
            time.sleep(pause_s)
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            yield (event if isinstance(event, str) else f"{name}data: {json.dumps(event)}\n\n").encode()

    def answer(request: Request) -> Reply:
        if refuses in json.loads(request.body):
            return 400, JSON, json.dumps({"error": {"message": f"Unknown parameter: '{refuses}'."}}).encode()
        if whole:
            return 200, JSON, json.dumps(events[0]).encode()
        return 200, {} if kind is None else {"Content-Type": kind}, sent()

    return HttpServer(answer)
