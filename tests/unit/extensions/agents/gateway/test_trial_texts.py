"""Paths and tokens of one trial in recorded replies: wherever a stream splits them, a replay gets its own."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentv.extensions.agents.gateway.trial_texts import TrialTexts
from agentv.model.values.trace import ModelReply

NAMES = ("[token]", "[repository]", "[workspace]", "[home]", "[trial]")
A = ("t0ken-a-123", "/srv/shop", "/tmp/agentv-a1/workspace", "/tmp/agentv-a1/home", "/tmp/agentv-a1")
B = ("t0ken-b-45", "/home/me/my shop", "/var/t/run-22/w", "/var/t/run-22/h", "/var/t/run-22")


def texts_of(values):
    return TrialTexts(dict(zip(values, NAMES, strict=True)))


RECORDED, REPLAYED = texts_of(A), texts_of(B)


def sse(*events) -> bytes:
    named = (f"event: {one.get('type', 'x')}\r\ndata: {json.dumps(one)}\r\n\r\n" for one in events)
    return ("".join(named) + "data: [DONE]\n\n").encode()


def events_of(body: bytes):
    lines = [line.removeprefix("data:").strip() for line in body.decode().splitlines() if line.startswith("data:")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


class Anthropic:
    """Interleaved deltas of a text block and two blocks of tool arguments."""

    @staticmethod
    def stream(pieces, arguments):
        yield {"type": "message_start", "message": {"id": "msg_1", "content": []}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for said, given_ in zip(pieces, arguments, strict=True):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}}
            for index in (1, 2):
                delta = {"type": "input_json_delta", "partial_json": given_}
                yield {"type": "content_block_delta", "index": index, "delta": delta}

    @staticmethod
    def joined(events):
        deltas = [(one["index"], one["delta"]) for one in events if "delta" in one]
        yield "".join(one["text"] for _, one in deltas if "text" in one)
        for index in (1, 2):
            yield "".join(one["partial_json"] for own, one in deltas if own == index)


class Chat:
    """OpenAI's chat completions: each delta has all new text and arguments."""

    @staticmethod
    def stream(pieces, arguments):
        calls = ({"index": 0, "id": "call_1", "type": "function"}, {"index": 1, "id": "call_2", "type": "function"})
        for number, (said, given_) in enumerate(zip(pieces, arguments, strict=True)):
            own = [{**(call if number == 0 else {"index": call["index"]})} for call in calls]
            delta = {"content": said, "tool_calls": [{**one, "function": {"arguments": given_}} for one in own]}
            yield {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta}]}

    @staticmethod
    def joined(events):
        deltas = [one["choices"][0]["delta"] for one in events]
        yield "".join(one["content"] for one in deltas)
        for index in (0, 1):
            yield "".join(one["tool_calls"][index]["function"]["arguments"] for one in deltas)


class Responses:
    """OpenAI's responses: the content of the deltas is repeated in full, twice."""

    @staticmethod
    def stream(pieces, arguments):
        text, called = "response.output_text", "response.function_call_arguments"
        for said, given_ in zip(pieces, arguments, strict=True):
            yield {"type": f"{text}.delta", "output_index": 0, "content_index": 0, "delta": said}
            for index in (1, 2):
                yield {"type": f"{called}.delta", "item_id": f"fc_{index}", "output_index": index, "delta": given_}
        said, given_ = "".join(pieces), "".join(arguments)
        yield {"type": f"{text}.done", "output_index": 0, "content_index": 0, "text": said}
        for index in (1, 2):
            yield {"type": f"{called}.done", "output_index": index, "arguments": given_}
        items = [{"type": "message", "content": [{"type": "output_text", "text": said}]}]
        items += [{"type": "function_call", "call_id": f"call_{index}", "arguments": given_} for index in (1, 2)]
        yield {"type": "response.completed", "response": {"output": items}}

    @staticmethod
    def joined(events):
        deltas = [one for one in events if "delta" in one]
        for index in (0, 1, 2):
            yield "".join(one["delta"] for one in deltas if one["output_index"] == index)
        yield from (one.get("text") or one.get("arguments") or "" for one in events if one["type"].endswith(".done"))
        output = events[-1]["response"]["output"]
        yield output[0]["content"][0]["text"]
        yield from (one["arguments"] for one in output[1:])


class Gemini:
    """Text parts, and calls whose arguments are objects."""

    @staticmethod
    def stream(pieces, arguments):
        args = json.loads("".join(arguments))
        call = {"functionCall": {"name": "write", "args": args}}
        for said in pieces:
            yield {"candidates": [{"content": {"parts": [{"text": said}]}, "index": 0}]}
        for _ in range(2):
            yield {"candidates": [{"content": {"parts": [call, call]}, "index": 0}]}

    @staticmethod
    def joined(events):
        parts = [part for one in events for part in one["candidates"][0]["content"]["parts"]]
        yield "".join(part["text"] for part in parts if "text" in part)
        yield from (json.dumps(part["functionCall"]["args"]) for part in parts if "functionCall" in part)


PROTOCOLS = pytest.mark.parametrize("protocol", [Anthropic, Chat, Responses, Gemini])


def cut(text, places):
    """Split a text at these places into one more piece than places."""
    ends = sorted(place % (len(text) + 1) for place in places)
    return [text[first:last] for first, last in zip([0, *ends], [*ends, len(text)], strict=True)]


def said(values):
    """Return the text and tool arguments of a model that uses these values."""
    token, repository, workspace, home, trial = values
    text = f"I look at {workspace}/a.txt,\n{home}/.x and {trial}. In '{repository}', -I{workspace}/inc ({token})"
    return text, {"path": f"{workspace}/a.txt", "text": f"cd {home}\n{workspace}/run '[agentv:workspace]'"}


def replayed(protocol, pieces, arguments):
    """Check the recorded events, and return the replayed ones."""
    recorded = list(protocol.stream(pieces, arguments))
    reply = ModelReply(200, "text/event-stream", sse(*recorded))
    kept = RECORDED.to_recorded(reply)
    joined = "\n".join(protocol.joined(events_of(kept.body)))
    assert not [one for one in A if one in joined]
    assert RECORDED.from_recorded(kept).body.count(b"\n") == reply.body.count(b"\n")
    assert [*protocol.joined(events_of(RECORDED.from_recorded(kept).body))] == [*protocol.joined(recorded)]
    events = events_of(REPLAYED.from_recorded(kept).body)
    assert len(events) == len(recorded)
    return events


@PROTOCOLS
def test_a_path_that_is_cut_anywhere_becomes_that_of_the_replay(protocol):
    text, arguments = said(A)
    other_text, other_arguments = said(B)
    given_ = json.dumps(arguments)
    for place in range(max(len(text), len(given_))):
        events = replayed(protocol, cut(text, [place]), cut(given_, [place]))
        wanted = protocol.stream([other_text], [json.dumps(other_arguments)])
        assert [*protocol.joined(events)] == [*protocol.joined(list(wanted))]


FILLERS = st.text("a/.-_ \n\"'\\[]:é" + "agentv", max_size=6)
STEPS = st.lists(st.tuples(FILLERS, st.sampled_from(range(5))), max_size=4)


@PROTOCOLS
@given(steps=STEPS, places=st.lists(st.integers(0, 300), max_size=40))
@example(steps=[("", 2), ("/[agentv:", 3)], places=list(range(40)))
def test_a_replay_says_what_a_model_in_its_place_would_have_streamed(protocol, steps, places):
    def text(values):
        return "".join(f"{filler} ({values[number]})" for filler, number in steps) + " end"

    def arguments(values):
        return json.dumps({"path": f"{values[2]}/{text(values)}"})

    events = replayed(protocol, cut(text(A), places), cut(arguments(A), places))
    wanted = protocol.stream([text(B)], [arguments(B)])
    assert [*protocol.joined(events)] == [*protocol.joined(list(wanted))]


@pytest.mark.parametrize("size", [2, 3, 7, 23, 24])
def test_no_text_is_empty_that_was_not(size):
    """Gemini CLI treats an empty part as an error."""
    text = f"{A[2]} and {A[3]}/a"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    kept = RECORDED.to_recorded(ModelReply(200, "text/event-stream", sse(*Gemini.stream(pieces, ["{}"]))))
    for reply in (kept, RECORDED.from_recorded(kept), REPLAYED.from_recorded(kept)):
        parts = [part for one in events_of(reply.body) for part in one["candidates"][0]["content"]["parts"]]
        assert all(part["text"] for part in parts if "text" in part)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/tmp/agentv-a1/workspace.", "[agentv:workspace]."),
        ("/tmp/agentv-a1/workspace.bak", "[agentv:trial]/workspace.bak"),
        ("/tmp/agentv-a12/workspace", "/tmp/agentv-a12/workspace"),
        ("file:///srv/shop/a", "file://[agentv:repository]/a"),
        ("PATH=/srv/shop:/srv/shop/bin", "PATH=[agentv:repository]:[agentv:repository]/bin"),
        ("projects/-tmp-agentv-a1-workspace/x", "projects/[agentv:workspace:dashed]/x"),
        ("[agentv:home]", "[agentv:literal]home]"),
    ],
)
def test_only_whole_paths_are_replaced(text, kept):
    reply = ModelReply(200, "application/json", json.dumps({"content": [{"text": text}]}).encode())
    found = RECORDED.to_recorded(reply)
    assert json.loads(found.body)["content"][0]["text"] == kept
    assert json.loads(RECORDED.from_recorded(found).body) == json.loads(reply.body)


@pytest.mark.parametrize(
    "body",
    [
        b'{ "text" : "nothing",\n  "n": 1.50 }',
        b'event: x\r\ndata:  {"text": "\\u00e4"}\r\n\r\n: ping\n\ndata: [DONE]\n',
        b"\xff/srv/shop",
        b'data: {"text": "torn',
        b"",
    ],
)
def test_what_has_nothing_of_the_trial_keeps_its_bytes(body):
    reply = ModelReply(200, "", body)
    assert RECORDED.to_recorded(reply) is reply
    assert REPLAYED.from_recorded(reply) is reply


def test_text_that_is_no_json_and_a_list_of_objects():
    plain = RECORDED.to_recorded(ModelReply(500, "text/plain", b"no file /srv/shop/a"))
    assert plain.body == b"no file [agentv:repository]/a"
    assert REPLAYED.from_recorded(plain).body == b"no file /home/me/my shop/a"
    half = "\ud83d"
    listed = json.dumps([{"text": "/srv/s"}, {"text": f"hop {half}"}]).encode()
    found = RECORDED.to_recorded(
        ModelReply(200, "application/json", json.dumps([{"text": f"/srv/shop {half}"}]).encode())
    )
    assert json.loads(found.body) == [{"text": f"[agentv:repository] {half}"}]
    assert json.loads(RECORDED.to_recorded(ModelReply(200, "", listed)).body)[0]["text"] == "[agentv:repository]"


def test_a_placeholder_that_this_trial_has_no_text_for_stays():
    reply = ModelReply(200, "", b'{"text": "[agentv:workspace] [agentv:x"}')
    assert TrialTexts({}).from_recorded(reply) is reply
