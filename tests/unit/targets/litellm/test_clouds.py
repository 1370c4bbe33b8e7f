"""Amazon Bedrock and Vertex AI through LiteLLM; Bedrock against a server on loopback that speaks its protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.targets.litellm.clouds import Bedrock, Vertex
from agentv.targets.litellm.target import _fixed_parameters
from doubles.asking import answer
from needs import needs

REPLY = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 2, "outputTokens": 1, "totalTokens": 3},
}


@pytest.fixture
def bedrock() -> Iterator[ThreadingHTTPServer]:
    class Converse(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self.server.seen = (self.path, self.headers["Authorization"], json.loads(self.rfile.read(length)))
            body = json.dumps(REPLY).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Converse) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@needs("litellm")
def test_bedrock_is_asked_in_its_own_protocol(bedrock):
    address = f"http://127.0.0.1:{bedrock.server_port}"
    found = answer(Bedrock("us.amazon.nova-lite-v1:0", base_url=address, api_key="key-of-bedrock", region="us-east-1"))
    assert isinstance(found, TargetResponse), found
    assert (found.output, found.token_usage) == ("yes", TokenUsage(2, 1, 3, 0, 0))
    path, authorization, body = bedrock.seen
    assert path.endswith(("/model/us.amazon.nova-lite-v1%3A0/converse", "/model/us.amazon.nova-lite-v1:0/converse"))
    assert authorization == "Bearer key-of-bedrock"
    assert body["messages"] == [{"role": "user", "content": [{"text": "hello"}]}]


def test_litellm_is_told_the_provider_and_the_place():
    found = _fixed_parameters(Bedrock("amazon.nova-lite-v1:0", region="eu-west-1"))
    assert (found["model"], found["aws_region_name"]) == ("bedrock/amazon.nova-lite-v1:0", "eu-west-1")
    found = _fixed_parameters(Vertex("gemini-2.5-flash", project="mine", location="europe-west4"))
    assert (found["model"], found["vertex_project"]) == ("vertex_ai/gemini-2.5-flash", "mine")
    assert found["vertex_location"] == "europe-west4"
    assert "vertex_project" not in _fixed_parameters(Vertex("gemini-2.5-flash"))
