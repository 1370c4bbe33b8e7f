import asyncio
import math

import pytest

from agentv.model.values.response import Embeddings, Failure
from agentv.ports import Embedder
from agentv.targets.local import Local
from agentv.user_code.functions.threads import DaemonThreads
from doubles.asking import answers, request, spec_of
from doubles.embedding import saved_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(saved_model(tmp_path_factory.mktemp("model")))


def embedded(place, *texts, times=1):
    async def ask():
        threads = DaemonThreads()
        target = Local(place).connect(spec_of(Local(place)), threads)
        assert isinstance(target, Embedder)
        try:
            return (await asyncio.gather(*(target.embed(texts, 30.0) for _ in range(times))))[-1]
        finally:
            await target.close()
            await threads.aclose()

    return asyncio.run(ask())


def test_texts_are_embedded_in_their_order(model):
    found = embedded(model, "hello", "Goodbye", "hello hello", times=3)
    assert isinstance(found, Embeddings)
    hello, goodbye, again = found.vectors
    assert hello == pytest.approx((1.0, 0.0, 0.0), abs=1e-4)
    assert goodbye == pytest.approx((0.0, 1.0, 0.0), abs=1e-4)
    assert math.dist(hello, again) < 1e-4
    assert (found.cost_usd, found.token_usage) == (0.0, None)
    assert all(type(number) is float for number in hello)


def test_a_directory_without_a_model_is_told(tmp_path):
    found = embedded(str(tmp_path), "hello")
    assert isinstance(found, Failure)
    assert found.code == "cannot-load"
    assert str(tmp_path) in found.message


def test_it_answers_nothing(model):
    [found] = answers(Local(model), request("hello"))
    assert isinstance(found, Failure)
    assert found.code == "bad-answer"
