"""Rate limits: the token bucket without a clock, and the headers of each provider."""

import openai
import pytest
from google import genai
from google.genai import errors
from google.genai.types import HttpOptions

from agentv.testing import ModelServer
from agentv.testing.replies import TokenBucket

HI = [{"role": "user", "content": "Hi"}]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_second_of_requests_passes_at_once_and_then_one_at_a_time():
    clock = Clock()
    bucket = TokenBucket(4, clock)
    assert [not bucket.take() for _ in range(5)] == [True] * 4 + [False]
    clock.now += 0.25
    assert [not bucket.take() for _ in range(2)] == [True, False]
    clock.now += 60
    assert [not bucket.take() for _ in range(5)] == [True] * 4 + [False]


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_lets_nothing_pass_is_refused(rate):
    with pytest.raises(ValueError, match="rate must be above 0 requests per second, found"):
        ModelServer("", rate=rate)


def test_openais_callers_see_when_to_come_again():
    clock = Clock()
    with (
        ModelServer("", rate=2, clock=clock) as server,
        openai.OpenAI(base_url=server.openai, api_key="k", max_retries=0) as client,
    ):
        client.chat.completions.create(model="m", messages=HI)
        client.chat.completions.create(model="m", messages=HI)
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="m", messages=HI)
        clock.now += 0.5
        client.chat.completions.create(model="m", messages=HI)
    headers = caught.value.response.headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "500")
    assert server.statuses == {200: 3, 429: 1}
    assert [call.at for call in server.calls] == [100.0, 100.0, 100.0, 100.5]


def test_geminis_callers_are_told_in_the_body():
    with ModelServer("", rate=1, clock=Clock()) as server:
        client = genai.Client(api_key="k", http_options=HttpOptions(base_url=server.gemini))
        client.models.generate_content(model="g", contents="Hi")
        with pytest.raises(errors.ClientError) as caught:
            client.models.generate_content(model="g", contents="Hi")
        client.close()
    assert caught.value.status == "RESOURCE_EXHAUSTED"
    assert caught.value.details["error"]["details"][0]["retryDelay"] == "1s"
