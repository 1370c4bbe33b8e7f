"""The names of the package `acp` that an agent of tests uses, without its 700 milliseconds of imports.

Messages are plain: nothing is checked here. The product's own end speaks by the package.
"""

import asyncio
import json
import re
import sys
from functools import partial
from itertools import count
from types import SimpleNamespace

PROTOCOL_VERSION = 1
_METHODS = {
    "initialize": "initialize",
    "authenticate": "authenticate",
    "session/new": "new_session",
    "session/prompt": "prompt",
    "session/set_config_option": "set_config_option",
    "session/cancel": "cancel",
}
_CALLS = {"request_permission": "session/request_permission"}


class RequestError(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code, self.data = code, data

    @classmethod
    def auth_required(cls):
        return cls(-32000, "Authentication required")


class Agent:
    """What has a method for each request."""


class Data(SimpleNamespace):
    """An object of a message: its keys are names in Python's spelling."""


PermissionOption = PromptResponse = InitializeResponse = NewSessionResponse = AuthenticateResponse = Data
AgentCapabilities = EnvVariable = Implementation = McpCapabilities = PromptCapabilities = ToolCallUpdate = Usage = Data
SetSessionConfigOptionResponse = Data


def update_agent_message_text(text):
    return Data(session_update="agent_message_chunk", content=Data(type="text", text=text))


def update_agent_thought_text(text):
    return Data(session_update="agent_thought_chunk", content=Data(type="text", text=text))


def _written(value):
    if isinstance(value, Data):
        found = {re.sub(r"_(.)", lambda letter: letter[1].upper(), name): one for name, one in vars(value).items()}
        return {name: _written(one) for name, one in found.items() if one is not None}
    return [_written(one) for one in value] if isinstance(value, list) else value


def _read(value):
    if isinstance(value, dict):
        return Data(
            **{re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): _read(one) for key, one in value.items()}
        )
    return [_read(one) for one in value] if isinstance(value, list) else value


class _Client:
    def __init__(self):
        self._numbers = count()
        self.waiting = {}

    def send(self, **message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    async def session_update(self, session_id, update):
        self.send(method="session/update", params=_written(Data(session_id=session_id, update=update)))

    def __getattr__(self, name):
        return partial(self._call, _CALLS[name])

    async def _call(self, method, **arguments):
        number = next(self._numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        self.send(id=number, method=method, params=_written(Data(**arguments)))
        return await self.waiting[number]

    def answered(self, message):
        future = self.waiting.pop(message["id"])
        if "error" in message:
            error = message["error"]
            future.set_exception(RequestError(error["code"], error["message"], error.get("data")))
        else:
            future.set_result(_read(message.get("result")))


async def _handle(agent, client, message):
    name = _METHODS[message["method"]]
    try:
        found = await getattr(agent, name)(**vars(_read(message["params"])))
    except RequestError as error:
        told = {"error": {"code": error.code, "message": str(error), "data": error.data}}
    else:
        told = {"result": _written(found)}
    if "id" in message:
        client.send(id=message["id"], **told)


async def run_agent(agent):
    """Serve standard input until it ends."""
    client = _Client()
    agent.on_connect(client)
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = set()
    while line := await reader.readline():
        message = json.loads(line)
        if "method" in message:
            tasks.add(asyncio.create_task(_handle(agent, client, message)))
        else:
            client.answered(message)
    for task in tasks:
        task.cancel()
