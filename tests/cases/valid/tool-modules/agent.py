from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def answer(prompt, mcp_config):
    url = mcp_config["mcpServers"]["shop"]["url"]
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        tools = [one.name for one in (await session.list_tools()).tools]
        found = await session.call_tool("refund", {"order_id": prompt})
        return f"{tools} {found.content[0].text}"
