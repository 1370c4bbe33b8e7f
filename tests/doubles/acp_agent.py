"""A scripted ACP agent that tests start as a process.

`python acp_agent.py SCRIPT`: a JSON object with `prompts`, a list of lists of steps, one for each prompt. A step is an
object with one key, which names a `do_…` method of `AcpAgent`. The messages are plain JSON, because importing the
package `acp`, which agentv itself uses, takes 700 milliseconds.
"""

# ruff: noqa: ASYNC220, ASYNC240  the process handles one request at a time

import asyncio
import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

METHODS = {
    "initialize": "initialize",
    "authenticate": "authenticate",
    "session/new": "new_session",
    "session/prompt": "prompt",
    "session/set_config_option": "set_config_option",
    "session/cancel": "cancel",
}
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class RequestError(Exception):
    """A JSON-RPC error response: code, message and data."""


class AcpAgent:
    def __init__(self, script):
        self.script, self.begin = script, script.get("begin", {})
        self.prompts = 0
        self.asked = []
        self.cancelled = asyncio.Event()
        self.servers = []
        self.authenticated = None
        self.numbers, self.waiting = count(), {}

    async def serve(self):
        """Handle requests from standard input until it closes."""
        reader = asyncio.StreamReader(limit=1 << 26)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        tasks = set()
        while line := await reader.readline():
            message = json.loads(line)
            if "method" in message:
                tasks.add(asyncio.create_task(self.handle(message)))
            else:
                self.waiting.pop(message["id"]).set_result(message.get("result"))
        for task in tasks:
            task.cancel()

    async def handle(self, message):
        try:
            told = {"result": await getattr(self, METHODS[message["method"]])(message["params"])}
        except RequestError as error:
            told = {"error": dict(zip(("code", "message", "data"), error.args, strict=False))}
        if "id" in message:
            send(id=message["id"], **told)

    async def initialize(self, _):
        if "print" in self.begin:
            raw(self.begin["print"])
        if self.begin.get("hang"):
            await asyncio.sleep(60)
        return {
            "protocolVersion": self.begin.get("version", 1),
            "agentCapabilities": {
                "mcpCapabilities": {"http": self.begin.get("http", False)},
                "promptCapabilities": {"image": self.begin.get("image", False)},
            },
            "agentInfo": {"name": "scripted", "version": "1.2.3"},
            "authMethods": self.begin.get("auth_methods", []),
        }

    async def authenticate(self, asked):
        self.authenticated = asked["methodId"]
        return {}

    async def new_session(self, asked):
        if self.begin.get("auth_methods") and not self.authenticated:
            raise RequestError(-32000, "Authentication required")
        self.cwd, self.servers = asked["cwd"], asked["mcpServers"]
        options = self.script.get("options")
        return {"sessionId": "session-1", **({"configOptions": options} if options else {})}

    async def set_config_option(self, asked):
        self.asked.append(f"{asked['configId']}={asked['value']}")
        return {"configOptions": []}

    async def cancel(self, _):
        self.cancelled.set()

    async def prompt(self, asked):
        self.asked.append(" ".join(one.get("text", one["type"]) for one in asked["prompt"]))
        prompts = self.script["prompts"]
        steps = prompts[min(self.prompts, len(prompts) - 1)]
        self.prompts += 1
        self.session = asked["sessionId"]
        for step in steps:
            [(what, value)] = step.items()
            if ended := await getattr(self, f"do_{what}")(value):
                return ended
        return {"stopReason": "end_turn"}

    async def do_say(self, text):
        values = {"asked": self.asked, "cwd": self.cwd, "prompts": self.prompts, "env": dict(os.environ)}
        text = text.format(agent=self, **values) if "{" in text else text
        await self.do_update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    async def do_think(self, text):
        await self.do_update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    async def do_update(self, update):
        send(method="session/update", params={"sessionId": self.session, "update": update})

    async def do_print(self, text):
        raw(text)

    async def do_ask(self, call):
        kinds = call.get("options", [one["kind"] for one in OPTIONS])
        given = {key: one for key, one in call.items() if key not in {"options", "then"}}
        asked = {
            "sessionId": self.session,
            "toolCall": {"title": "Edit a.txt", "kind": "edit", "status": "pending", **given},
            "options": [one for one in OPTIONS if one["kind"] in kinds],
        }
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        send(id=number, method="session/request_permission", params=asked)
        self.outcome = (await self.waiting[number])["outcome"].get("optionId", "cancelled")
        if call.get("then") and self.outcome in {"yes", "always"}:
            Path(self.cwd, call["then"]).write_text("done")

    async def do_file(self, pair):
        path = Path(self.cwd, pair[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pair[1])

    async def do_hang(self, kind):
        if kind == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if kind in {"child", "deaf"}:
            code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
            child = subprocess.Popen([sys.executable, "-c", code], start_new_session=kind == "child")
            Path(self.cwd, "pids").write_text(f"{os.getpid()} {child.pid}")
        if kind == "until cancelled":
            await self.cancelled.wait()
            return {"stopReason": "cancelled"}
        await asyncio.sleep(60)
        return None

    async def do_error(self, pair):
        raise RequestError(*pair, {"details": "no route to the model"})

    async def do_stop(self, reason):
        return {"stopReason": reason}

    async def do_usage(self, counts):
        return {"stopReason": "end_turn", "usage": counts}

    async def do_call(self, wanted):
        """Call a tool of the session's MCP server with the client of the `mcp` package."""
        from mcp import Client, MCPError, StdioServerParameters

        server = next(one for one in self.servers if one["name"] == wanted["server"])
        parameters = server.get("url")
        if parameters is None:
            env = {one["name"]: one["value"] for one in server["env"]}
            parameters = StdioServerParameters(command=server["command"], args=server["args"], env=env)
        async with Client(parameters) as client:
            tools = await client.list_tools()
            self.asked.append(",".join(one.name for one in tools.tools))
            for arguments in wanted["calls"]:
                try:
                    result = await client.call_tool(wanted["tool"], arguments)
                except MCPError as error:
                    self.asked.append(f"error: {error.message}")
                    continue
                text = " ".join(getattr(one, "text", "") for one in result.content)
                self.asked.append(f"{'error: ' if result.is_error else ''}{text}")


def send(**message):
    raw(json.dumps({"jsonrpc": "2.0", **message}))


def raw(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(AcpAgent(json.loads(sys.argv[1])).serve())
