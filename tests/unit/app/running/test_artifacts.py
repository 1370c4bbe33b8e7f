"""Secrets that a stream sends in pieces, over several lines."""

import json

import pytest

from agentv.app.running.artifacts import redacted_stream
from agentv.model.secrets.redaction import Redactor

SECRET = "sk-shop-1234567890abcdef"


def update(text, **more):
    return {"method": "session/update", "params": {"update": {"content": {"type": "text", "text": text}, **more}}}


def lines(*objects):
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


def texts(data):
    return "".join(
        json.loads(line)["params"]["update"]["content"]["text"] for line in data.splitlines() if b"params" in line
    )


@pytest.mark.parametrize("size", [1, 3, 7, 12, 23])
def test_a_secret_in_pieces_is_taken_out_of_all_of_them(size):
    said = f"The key is {SECRET}, and the rest."
    data = lines(*(update(said[at : at + size]) for at in range(0, len(said), size)))
    clean = redacted_stream(data, Redactor([SECRET]))
    assert texts(clean) == "The key is [redacted], and the rest."
    assert len(clean.splitlines()) == len(data.splitlines())


def test_a_secret_in_two_pieces_is_taken_out_of_both_and_other_letters_stay():
    data = lines(update(f"caf\xe9 {SECRET[:9]}"), update(f"{SECRET[9:]} \ud800"))
    clean = redacted_stream(data.replace(b"caf\\u00e9", "caf\xe9".encode()), Redactor([SECRET]))
    assert texts(clean) == "caf\xe9 [redacted] \ud800"
    assert "caf\xe9 [redacted]".encode() in clean


def test_pieces_of_different_places_are_not_one_text():
    data = lines(update(SECRET[:6]), {"method": "x", "params": {"other": SECRET[6:12]}})
    assert redacted_stream(data, Redactor([SECRET])) == data


def test_what_has_no_secret_keeps_its_bytes():
    data = b'{"a" : "\\u00e4"}\n{"a": "b"}\n{"torn": "'
    assert redacted_stream(data, Redactor([SECRET])) == data
    assert redacted_stream(data, Redactor()) is data
