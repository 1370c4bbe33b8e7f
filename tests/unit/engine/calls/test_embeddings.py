import asyncio

import pytest

from agentv.engine.calls.embeddings import EmbeddingCache, RecordedEmbedder
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Embeddings, Failure
from doubles.embedding import CountingEmbedder, word_vector
from doubles.stores import MemoryStore


def embedded(remembering, *texts):
    return asyncio.run(remembering.embed(texts, 1.0))


class Gated(CountingEmbedder):
    """Answers when released."""

    def __init__(self, reply=None):
        super().__init__(reply)
        self.gate = asyncio.Event()

    async def embed(self, texts, timeout_s):
        found = await super().embed(texts, timeout_s)
        await self.gate.wait()
        return found


def test_a_text_is_embedded_once():
    counting = CountingEmbedder()
    remembering = EmbeddingCache(counting)
    first = embedded(remembering, "hello", "hi", "hello")
    assert first.vectors == (word_vector("hello"), word_vector("hi"), word_vector("hello"))
    assert (first.token_usage.total, first.cost_usd) == (2, 0.001)
    assert embedded(remembering, "hi", "bye").vectors == (word_vector("hi"), word_vector("bye"))
    assert counting.asked == [["hello", "hi"], ["bye"]]
    known = embedded(remembering, "bye")
    assert (known.vectors, known.token_usage, known.cost_usd) == ((word_vector("bye"),), None, 0.0)


def test_the_longest_unused_is_forgotten_first():
    counting = CountingEmbedder()
    remembering = EmbeddingCache(counting, kept=2)
    for text in ("hello", "hi", "hello", "bye", "hello", "hi"):
        embedded(remembering, text)
    assert [texts for [texts] in counting.asked] == ["hello", "hi", "bye", "hi"]


async def test_those_that_wait_for_a_call_that_was_given_up_ask_on_their_own():
    gated = Gated()
    remembering = EmbeddingCache(gated)
    first = asyncio.create_task(remembering.embed(("hello",), 1.0))
    second = asyncio.create_task(remembering.embed(("hello",), 1.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    gated.gate.set()
    assert (await second).vectors == (word_vector("hello"),)
    assert gated.asked == [["hello"], ["hello"]]


async def test_a_failure_is_told_to_all_that_wait_and_to_nobody_later():
    gated = Gated(lambda _: Failure("connection", "gone"))
    remembering = EmbeddingCache(gated)
    calls = [asyncio.create_task(remembering.embed(("hello",), 1.0)) for _ in range(3)]
    await asyncio.sleep(0)
    gated.gate.set()
    found = await asyncio.gather(*calls)
    later = await remembering.embed(("hello",), 1.0)
    assert {one.code for one in (*found, later)} == {"connection"}
    assert len(gated.asked) == 2


@pytest.mark.parametrize("vectors", [(), ((1.0,),), ((1.0,), (2.0,), (3.0,))])
def test_too_few_or_too_many_vectors_are_no_answer(vectors):
    remembering = EmbeddingCache(CountingEmbedder(lambda _: Embeddings(vectors)))
    assert embedded(remembering, "a", "b").code == "bad-answer"


def test_too_many_vectors_are_no_answer_for_texts_of_which_some_are_recorded():
    store, spec = MemoryStore(), TargetSpec("vectors", "x", None, fingerprint="f1")
    assert embedded(RecordedEmbedder(CountingEmbedder(), spec, store), "a").vectors == (word_vector("a"),)
    store.load_answers()
    three = CountingEmbedder(lambda _: Embeddings(((1.0,), (2.0,), (3.0,))))
    found = embedded(RecordedEmbedder(three, spec, store), "a", "b", "c")
    assert (found.code, three.asked) == ("bad-answer", [["b", "c"]])
