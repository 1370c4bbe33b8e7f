"""The meaning of an error status and its headers."""

from datetime import UTC, datetime

import pytest

from agentv.targets.http.failures import failure_of, retry_after, shown

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [400, 413, 422, None])
def test_another_try_cannot_help_and_another_case_may(status):
    failure = failure_of(status, "no", {})
    assert (failure.retryable, failure.stops, failure.status) == (False, False, status)


@pytest.mark.parametrize(
    "said",
    [
        "Incorrect API key provided: sk-very-secret.",
        "Incorrect API key provided: sk-ve********cret.",
        "GET https://host/v1/models?key=sk-very-secret&x=1 failed",
        "see https://user:sk-very-secret@host/v1",
    ],
)
def test_no_key_stays_in_a_message(said):
    message = shown(said, ["sk-very-secret"])
    assert "sk-ve" not in message
    assert "cret" not in message
    assert len(message) > 10


def test_a_redirect_says_what_to_write_and_shows_no_key():
    moved = {"Location": "https://user:key@new.example/v1/chat/completions?api_key=sk-1"}
    found = failure_of(308, "moved", moved)
    shown = found.message
    assert shown == "HTTP 308 Permanent Redirect: the server redirects to new.example/v1: write that as 'base_url'"
    assert (found.retryable, found.stops, found.status) == (False, False, 308)
    whole = failure_of(301, "", {"location": "https://new.example/v1/messages"}, address="url")
    assert whole.message.endswith("redirects to new.example/v1/messages: write that as 'url'")
    assert failure_of(302, "", {"location": "?key=sk-1"}).message.endswith(
        "redirects to nowhere: write that as 'base_url'"
    )
    assert "redirects to elsewhere.example:" in failure_of(300, "", {"location": "//elsewhere.example"}).message
    assert "an address that cannot be parsed" in failure_of(302, "", {"location": "https://[x"}).message


@pytest.mark.parametrize("status", [None, 299, 400])
def test_a_location_without_a_redirect_leads_nowhere(status):
    assert failure_of(status, "no", {"location": "https://new.example"}).message.endswith(": no")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "120", "retry-after": "1"}, 0.12),
        ({"retry-after-ms": "-5", "retry-after": "1"}, 0.0),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers, seconds):
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize("said", ["1e999", "inf", "-1e30", "9" * 400, "1.2.3s", "٣s"])
def test_nonsense_in_a_header_is_passed_over(said):
    assert retry_after({"retry-after": said}) is None
