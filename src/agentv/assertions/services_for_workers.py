"""Services that user code can call while it grades in a worker: the judge and embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentv.model.run.context import AssertionContext
from agentv.model.values.response import Failure
from agentv.model.values.trace_summary import usage_json
from agentv.ports import Handler

ADAPTERS = "agentv.user_code.workers.adapters"
"""Module of the adapters by which workers call users' functions."""


def services_of(context: AssertionContext) -> Handler:
    """Return the handler of calls from a worker that grades an answer."""

    async def handle(name: str, arguments: Sequence[Any]) -> Any:
        if name == "judge":
            found = await context.services.judge(arguments[0]).ask(arguments[1])
            if isinstance(found, Failure):
                raise LookupError(found.message)
            return {
                "output": found.output,
                "cost_usd": found.cost_usd,
                "token_usage": usage_json(found.token_usage),
            }
        embedded = await context.services.embedder(arguments[0]).embed(arguments[1], arguments[2])
        if isinstance(embedded, Failure):
            raise LookupError(embedded.message)  # noqa: TRY004  # not a wrong type: the embedding failed
        return embedded.vectors

    return handle
