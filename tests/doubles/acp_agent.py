"""An agent that speaks ACP and does what its script says: a process of its own, started by tests.

`python acp_agent.py SCRIPT`: a JSON object with `prompts`, a list of lists of steps, one for each prompt. A step is an
object with one key; `AcpAgent.do` knows them. With `sdk` it speaks by the package `acp`, which takes long to import,
and otherwise by the few names of it in `plain_acp.py`.
"""

# ruff: noqa: ASYNC220, ASYNC240  # it has one thing to do at a time

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = json.loads(sys.argv[1])
if SCRIPT.get("sdk"):
    import acp
    from acp import schema
else:
    import plain_acp as acp

    schema = acp

OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class AcpAgent(acp.Agent):
    def __init__(self, script):
        self.script = script
        self.prompts = 0
        self.asked = []
        self.cancelled = asyncio.Event()
        self.servers = []
        self.authenticated = None

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        begin = self.script.get("begin", {})
        if "exit" in begin:
            sys.stderr.write("cannot begin\n")
            os._exit(begin["exit"])
        if "print" in begin:
            raw(begin["print"])
        if begin.get("hang"):
            await asyncio.sleep(60)
        return acp.InitializeResponse(
            protocol_version=begin.get("version", acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                mcp_capabilities=schema.McpCapabilities(http=begin.get("http", False)),
                prompt_capabilities=schema.PromptCapabilities(image=begin.get("image", False)),
            ),
            agent_info=schema.Implementation(name="scripted", version="1.2.3"),
            auth_methods=begin.get("auth_methods", []),
        )

    async def authenticate(self, method_id, **_):
        self.authenticated = method_id
        return schema.AuthenticateResponse()

    async def new_session(self, cwd, mcp_servers=None, **_):
        if self.script.get("begin", {}).get("auth_methods") and not self.authenticated:
            raise acp.RequestError.auth_required()
        self.cwd = cwd
        self.servers = mcp_servers or []
        return acp.NewSessionResponse(session_id="session-1", config_options=self.script.get("options"))

    async def set_config_option(self, config_id, session_id, value, **_):
        self.asked.append(f"{config_id}={value}")
        return schema.SetSessionConfigOptionResponse(config_options=[])

    async def cancel(self, session_id, **_):
        self.cancelled.set()

    async def prompt(self, prompt, session_id, **_):
        self.asked.append(" ".join(one.text if one.type == "text" else one.type for one in prompt))
        prompts = self.script["prompts"]
        steps = prompts[min(self.prompts, len(prompts) - 1)]
        self.prompts += 1
        self.session = session_id
        for step in steps:
            found = await self.do(*next(iter(step.items())))
            if isinstance(found, acp.PromptResponse):
                return found
        return acp.PromptResponse(stop_reason="end_turn")

    async def tell(self, update):
        await self.client.session_update(self.session, update)

    async def do(self, what, value):
        return await getattr(self, f"do_{what}")(value)

    async def do_say(self, text):
        values = {"asked": self.asked, "cwd": self.cwd, "prompts": self.prompts, "env": dict(os.environ)}
        await self.tell(acp.update_agent_message_text(text.format(agent=self, **values) if "{" in text else text))

    async def do_think(self, text):
        await self.tell(acp.update_agent_thought_text(text))

    async def do_update(self, update):
        message = {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {"sessionId": self.session, "update": update},
        }
        raw(json.dumps(message))

    async def do_print(self, text):
        raw(text)

    async def do_ask(self, call):
        kinds = call.get("options", [one.kind for one in OPTIONS])
        options = [one for one in OPTIONS if one.kind in kinds]
        given = {key: one for key, one in call.items() if key not in {"options", "then"}}
        told = schema.ToolCallUpdate(**{"title": "Edit a.txt", "kind": "edit", "status": "pending", **given})
        answer = await self.client.request_permission(session_id=self.session, tool_call=told, options=options)
        self.outcome = getattr(answer.outcome, "option_id", "cancelled")
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
            return acp.PromptResponse(stop_reason="cancelled")
        await asyncio.sleep(60)
        return None

    async def do_exit(self, status):
        sys.stdout.flush()
        sys.stderr.write("went away\n")
        os._exit(status)

    async def do_error(self, pair):
        raise acp.RequestError(pair[0], pair[1], {"details": "no route to the model"})

    async def do_stop(self, reason):
        return acp.PromptResponse(stop_reason=reason)

    async def do_usage(self, counts):
        return acp.PromptResponse(stop_reason="end_turn", usage=schema.Usage(**counts))

    async def do_call(self, wanted):
        """Call a tool of the MCP server that this session was given, by the `mcp` package's client."""
        from mcp import Client, MCPError, StdioServerParameters

        server = next(one for one in self.servers if one.name == wanted["server"])
        if hasattr(server, "url"):
            parameters = server.url
        else:
            env = {one.name: one.value for one in server.env}
            parameters = StdioServerParameters(command=server.command, args=server.args, env=env)
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


def raw(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(AcpAgent(SCRIPT)))
