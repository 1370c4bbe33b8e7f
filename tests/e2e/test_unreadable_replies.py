"""Replies that never end or are not UTF-8, from every kind of provider: the case errors and the run goes on."""

from collections.abc import Iterator
from itertools import repeat

import pytest

from doubles.http_server import HttpServer
from needs import each

pytestmark = pytest.mark.libraries

PROVIDERS = {
    "http": "provider: http, url: 'URL', output: $.x",
    "openai": "provider: openai, model: gpt-x, base_url: 'URL/v1', api_key: '{{ env.FAKE }}'",
    "anthropic": "provider: anthropic, model: claude-x, base_url: 'URL', api_key: '{{ env.FAKE }}'",
    "gemini": "provider: gemini, model: gemini-x, base_url: 'URL', api_key: '{{ env.FAKE }}'",
    "litellm": "provider: litellm, model: openai/gpt-x, base_url: 'URL/v1', api_key: '{{ env.FAKE }}'",
}
NOT_UTF_8 = (
    b'{"x": "x \xff", "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",'
    b' "object": "chat.completion", "created": 1, "content": [{"type": "text", "text": "x \xff"}],'
    b' "usage": {"input_tokens": 1, "output_tokens": 1},'
    b' "choices": [{"index": 0, "message": {"role": "assistant", "content": "x \xff"}, "finish_reason": "stop"}],'
    b' "candidates": [{"content": {"role": "model", "parts": [{"text": "x \xff"}]}, "finishReason": "STOP"}]}'
)
REPLIES = {
    "endless": (lambda: repeat(b" " * 65_536), {"output-too-large"}),
    "not-utf-8": (lambda: NOT_UTF_8, {"not-utf-8", "bad-answer", "target-error"}),
}
"""Name of a reply → the reply, and the codes of which its error must have one."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Yield the address of a server whose reply is chosen by the start of the path."""
    headers = {"Content-Type": "application/json"}
    with HttpServer(lambda request: (200, headers, REPLIES[request.path.split("/")[1]][0]())) as server:
        yield server.url


@pytest.mark.parametrize("provider", each(PROVIDERS))
def test_a_reply_that_cannot_be_held_or_read_is_errored(project, provider, url):
    for name in REPLIES:
        settings = PROVIDERS[provider].replace("URL", f"{url}/{name}")
        project.write(
            f"{name}.eval.yaml",
            f"target: {{{settings}, retry: {{max_retries: 0}}}}\ntests: [{{id: {name}, input: hi, assert: [contains: x]}}]\n",
        )
    project.run(
        "eval", *(f"{name}.eval.yaml" for name in REPLIES), "--out", "out", env={"FAKE": "not-a-real-key"}, status=3
    )
    rows = {row["test_id"]: row for row in project.rows("out")}
    assert {name: row["status"] for name, row in rows.items()} == dict.fromkeys(REPLIES, "errored")
    wrong = [
        f"{name}: {code}, and not one of {wanted}"
        for name, (_, wanted) in REPLIES.items()
        if (code := rows[name]["error"]["code"]) not in wanted
    ]
    assert wrong == []
