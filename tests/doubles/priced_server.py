"""A server with OpenAI's protocol that reports the cost of its calls."""

import json
import time
from collections.abc import Callable

from doubles import http_server

Reply = Callable[[str, str], tuple[str, float]]
"""Function from the model and all texts of a call to the answer and its cost."""


class PricedServer(http_server.HttpServer):
    """Serves during a `with` block; reports `cost_usd` for every call unless `reply` returns another cost."""

    def __init__(self, cost_usd: float = 0.0, delay_s: float = 0.0, reply: Reply | None = None) -> None:
        def answer(request: http_server.Request) -> http_server.Reply:
            given = json.loads(request.body)
            text, cost = "fine", cost_usd
            if reply is not None:
                text, cost = reply(given["model"], "\n".join(str(one["content"]) for one in given["messages"]))
            time.sleep(delay_s)
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": cost}
            message = {"role": "assistant", "content": text}
            body = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
            return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

        super().__init__(answer)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"
