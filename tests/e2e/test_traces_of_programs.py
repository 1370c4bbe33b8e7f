"""Traces of programs that know nothing of agentv: by spans that they send, and by the model calls that pass the gateway."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import pytest

from agentv.extensions.agents.traces.otlp_export import protobuf_of
from agentv.testing import ModelServer, use_tool
from needs import needs

TESTS = Path(__file__).parents[1]
TOOL = [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
    {"key": "gen_ai.tool.name", "value": {"stringValue": "get_order"}},
]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def shop(receiver: int, *, protobuf: bool) -> Iterator[str]:
    """The URL of a server that calls a tool in each request, and sends the span of it where servers send theirs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = self.rfile.read(int(self.headers["Content-Length"])).decode()
            _, trace, parent, _ = self.headers["traceparent"].split("-")
            arguments = {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": question}}
            span = {"traceId": trace, "spanId": "ab" * 8, "parentSpanId": parent, "name": "execute_tool get_order"}
            rows = {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": [*TOOL, arguments]}]}]}]}
            body = protobuf_of(rows) if protobuf else json.dumps(rows).encode()
            kind = "application/x-protobuf" if protobuf else "application/json"
            urlopen(Request(f"http://127.0.0.1:{receiver}/v1/traces", body, {"Content-Type": kind})).read()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"It has shipped.")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("protobuf", [pytest.param(True, marks=needs("opentelemetry.proto")), False])
def test_the_spans_of_a_server_are_the_trace_of_the_trial_that_called_it(project, protobuf):
    port = free_port()
    cases = "".join(
        f"  - {{id: c{one}, input: A-{one}, assert: [{{trajectory:tool-args-match: {{name: get_order, args: {{order: A-{one}}}}}}}]}}\n"
        for one in range(8)
    )
    with shop(port, protobuf=protobuf) as url:
        body = '{order: "{{ prompt }}"}'
        target = f"target: {{name: shop, provider: http, url: '{url}', body: {body}, otel: {port}}}\n"
        project.write("a.eval.yaml", f"{target}tests:\n{cases}")
        ended = project.run("eval", "a.eval.yaml", "--workers", "8")
    assert (ended.status, len(project.rows())) == (0, 8), ended.stdout + ended.stderr


@needs("bwrap")
@pytest.mark.parametrize("network", ["host", "loopback"])
def test_a_program_in_a_sandbox_reaches_the_receiver(project, network):
    shutil.copy(TESTS / "cases/valid/cli-sends-spans/agent.py", project.path)
    (project.path / "repo").mkdir()
    project.write("repo/readme.txt", "a shop")
    project.write(
        "a.eval.yaml",
        f"""targets: [{{name: shop, provider: cli, command: [python3, ./agent.py], otel: true}}]
sandbox: bwrap
workspace: {{template: ./repo, network: {network}}}
tests:
  - {{id: one, input: A-1, assert: [{{trajectory:tool-args-match: {{name: get_order, args: {{order: A-1}}}}}}]}}
""",
    )
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 0, ended.stdout + ended.stderr
    assert project.rows()[0]["sandbox"] == "bwrap"


@pytest.mark.libraries
def test_an_agent_of_acp_that_reports_no_tools_is_traced_by_the_gateway(project):
    script = json.dumps({"prompts": [[{"model": "Where is A-42?"}]]})
    command = [sys.executable, str(TESTS / "doubles/acp_agent.py"), script, "{{ gateway.openai }}"]
    with ModelServer([use_tool("get_order", id="A-42"), "A-42 has shipped."]) as server:
        target = {
            "name": "agent",
            "provider": "acp",
            "command": command,
            "env": {"MODEL_KEY": "{{ gateway.key }}"},
            "gateway": "openai",
            "base_url": server.openai,
            "api_key": "sk-real-0123456789abcdef",
        }
        tests = [
            {
                "id": "shipped",
                "input": "Where is A-42?",
                "assert": [
                    {"contains": "shipped"},
                    {"trajectory:tool-args-match": {"name": "get_order", "args": {"id": "A-42"}}},
                ],
            }
        ]
        project.write("a.eval.yaml", json.dumps({"target": target, "tests": tests}))
        ended = project.run("eval", "a.eval.yaml", "--out", "out")
    assert ended.status == 0, ended.stdout + ended.stderr
    [row] = project.rows("out")
    steps = json.loads((project.path / "out" / row["trace_path"]).read_text())["steps"]
    assert [(one["name"], one["result"], one["evidence"]) for one in steps if one["type"] == "tool_call"] == [
        ("get_order", "shipped", "gateway")
    ]
    assert row["token_usage"]["total"] == 30
