"""The real key in an API's replies."""

from agentv.extensions.agents.gateway.routes import StreamRedaction
from agentv.model.suite.tools import ModelUpstream

KEY = "sk-sk-real-0123456789"


def shown(text, cuts, key=KEY):
    redaction, sent = StreamRedaction(ModelUpstream("openai", "http://x", key)), b""
    for begin, end in zip((0, *cuts), (*cuts, len(text)), strict=True):
        sent += redaction.feed(text[begin:end])
    return sent + redaction.end()


def test_a_key_is_taken_out_of_a_stream_wherever_it_is_cut():
    text = f"data: sk-{KEY} and {KEY}\n\nsk-sk-real-012 sk-".encode()
    for first in range(len(text)):
        for second in range(first, len(text), 3):
            assert shown(text, (first, second)) == b"data: sk-[redacted] and [redacted]\n\nsk-sk-real-012 sk-"


def test_nothing_waits_that_is_no_beginning_of_the_key():
    redaction = StreamRedaction(ModelUpstream("openai", "http://x", KEY))
    assert redaction.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert redaction.feed(b"data: sk-s") == b"data: "
    assert redaction.feed(b"ee\n\n") == b"sk-see\n\n"


def test_a_short_key_is_no_secret():
    assert shown(b"none, none", (2,), key="none") == b"none, none"
