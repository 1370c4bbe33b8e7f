"""A shop's agent that speaks the Agent Client Protocol and uses MCP tools. It needs no model and no library."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

NUMBERS = count(1)
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Refuse", "kind": "reject_once"},
]


def send(stream, **message):
    stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    stream.flush()


def call(read, write, method, params):
    """The result of a request to the other side."""
    number = next(NUMBERS)
    send(write, id=number, method=method, params=params)
    while (answer := json.loads(read.readline())).get("id") != number:
        pass
    return answer


def update(kind, **more):
    send(sys.stdout, method="session/update", params={"sessionId": "1", "update": {"sessionUpdate": kind, **more}})


def say(text):
    update("agent_message_chunk", content={"type": "text", "text": text})


def look_up(order):
    say(f"Order {order}: ")
    update("tool_call", toolCallId=order, title="get_order", status="in_progress", rawInput={"id": order})
    update("tool_call_update", toolCallId=order, status="completed" if len(order) == 1 else "failed")


def delete(workspace):
    asked = {"toolCallId": "delete", "title": "Delete the order", "kind": "delete"}
    params = {"sessionId": "1", "toolCall": asked, "options": OPTIONS}
    call(sys.stdin, sys.stdout, "session/request_permission", params)
    Path(workspace, "notes.txt").write_text("The order stays.")


def refund(server, amount):
    """Call a tool of an MCP server on stdio."""
    env = {**os.environ, **{one["name"]: one["value"] for one in server["env"]}}
    command = [server["command"], *server["args"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as tools:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "shop", "version": "1"}}
        call(tools.stdout, tools.stdin, "initialize", client)
        send(tools.stdin, method="notifications/initialized")
        arguments = {"order_id": "7", "amount": amount}
        call(tools.stdout, tools.stdin, "tools/call", {"name": "refund", "arguments": arguments})
        tools.stdin.close()


def work(question, session):
    if "Refund" in question:
        refund(session["mcpServers"][0], 40 if "all" in question else 4)
    if "Look" in question:
        for order in (word.strip(",.") for word in question.split()):
            if order.isdigit():
                look_up(order)
    if "Delete" in question:
        delete(session["cwd"])
    say("That is all.")


def main():
    session = {}
    while line := sys.stdin.readline():
        request = json.loads(line)
        result = {}
        match request["method"]:
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {}}
            case "session/new":
                session, result = request["params"], {"sessionId": "1"}
            case "session/prompt":
                work(" ".join(block["text"] for block in request["params"]["prompt"]), session)
                result = {"stopReason": "end_turn"}
        if "id" in request:
            send(sys.stdout, id=request["id"], result=result)


main()
