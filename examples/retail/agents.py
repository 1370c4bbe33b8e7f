"""Three agents without a model: one works, one does nothing, and one only says that it worked."""

import re
from contextlib import asynccontextmanager
from datetime import date

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def shop(mcp_config):
    url = mcp_config["mcpServers"]["shop"]["url"]
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        yield session


async def honest(messages, mcp_config):
    said = " ".join(message["content"] for message in messages if message["role"] == "user")
    async with shop(mcp_config) as session:

        async def call(tool, **arguments):
            return (await session.call_tool(tool, arguments)).structured_content

        number = re.search(r"\b[A-Z]-\d+\b", said)
        if number is None:
            return "What is the number of your order?"
        order = await call("get_order", order_id=number[0])
        if "cancel" not in said and (date.fromisoformat(order["today"]) - date.fromisoformat(order["on"])).days > 30:
            return "It was delivered more than 30 days ago, so I cannot take it back."
        items = [item for item in order["items"] if item in said]
        if "Yes." not in said:
            return f"Shall I go ahead with {', '.join(items) or 'that'}?"
        if "cancel" in said:
            await call("cancel", order_id=number[0])
            return "Done. The order is cancelled."
        if size := re.search(r"size (\d+)", said):
            await call("exchange", order_id=number[0], item=next(iter(order["items"])), new_item=f"boots {size[1]}")
            return "Done. The new boots are on their way."
        found = await call("refund", order_id=number[0], items=items)
        return f"Done. You get {found['amount']:g} back."


async def lazy(mcp_config):
    async with shop(mcp_config):
        return "We are looking into it. Please write to us again."


async def lying(mcp_config):
    async with shop(mcp_config):
        return "Done. You get 40 back, or 44.9 for both, within 30 days."
