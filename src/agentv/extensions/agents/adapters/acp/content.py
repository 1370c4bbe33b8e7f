"""Messages and MCP servers as the SDK's models."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.model.suite.tools import McpServer
from agentv.model.values.message import DocumentBlock, ImageBlock, Message, prompt_text
from agentv.model.values.pictures import media_type_in
from agentv.model.values.response import Failure

if TYPE_CHECKING:
    from acp.schema import InitializeResponse


def prompt_blocks(messages: Sequence[Message], agent: InitializeResponse | None) -> list[Any] | Failure:
    """What an agent is asked, as content blocks; why it cannot be.

    Args:
        messages: those that are new to the session. Several are one text, as a prompt of theirs is.
        agent: what it said of itself.
    """
    from acp import text_block

    blocks: list[Any] = [text_block(prompt_text(tuple(messages)))]
    for message in messages:
        for block in message.content if isinstance(message.content, tuple) else ():
            if isinstance(block, ImageBlock):
                picture = _picture(block, agent)
                if isinstance(picture, Failure):
                    return picture
                blocks.append(picture)
            elif isinstance(block, DocumentBlock):
                blocks.append(_link(block))
    return blocks


def _picture(block: ImageBlock, agent: InitializeResponse | None) -> Any:
    from acp import image_block

    known = agent and agent.agent_capabilities
    capabilities = known and known.prompt_capabilities
    if not capabilities or not capabilities.image:
        return Failure("bad-picture", "the agent takes no pictures")
    if block.path is None:
        return Failure("bad-picture", f"{block.value}: an agent takes pictures of files, not addresses")
    try:
        data = Path(block.path).read_bytes()
    except OSError as error:
        return Failure("bad-picture", f"{block.value}: {error.strerror}")
    return image_block(base64.b64encode(data).decode(), media_type_in(data) or "image/png")


def _link(block: DocumentBlock) -> Any:
    from acp import resource_link_block

    return resource_link_block(Path(block.path).name, Path(block.path).as_uri(), mime_type=block.media_type)


def mcp_servers(servers: Sequence[McpServer], agent: InitializeResponse) -> list[Any] | Failure:
    """MCP servers as `session/new` takes them; a Failure `no-tools` where the agent does not speak their transport."""
    from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio

    capabilities = agent.agent_capabilities and agent.agent_capabilities.mcp_capabilities
    made: list[Any] = []
    for one in servers:
        if one.transport == "stdio":
            env = [EnvVariable(name=name, value=value) for name, value in one.env.items()]
            made.append(McpServerStdio(name=one.name, command=one.command[0], args=list(one.command[1:]), env=env))
        elif not capabilities or not capabilities.http:
            return Failure("no-tools", f"the agent does not connect to MCP servers over HTTP, such as '{one.name}'")
        else:
            headers = [HttpHeader(name=name, value=value) for name, value in one.headers.items()]
            made.append(HttpMcpServer(type="http", name=one.name, url=one.url, headers=headers))
    return made
