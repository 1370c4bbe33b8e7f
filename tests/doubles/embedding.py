"""Embeddings for tests: a saved model of a few words, and an embedder that counts its calls."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentv.model.values.response import Embeddings, Failure
from agentv.model.values.usage import TokenUsage

WORDS: Mapping[str, tuple[float, ...]] = {
    "[UNK]": (0.0, 0.0, 1.0),
    "hello": (1.0, 0.0, 0.0),
    "hi": (0.9, 0.1, 0.0),
    "goodbye": (0.0, 1.0, 0.0),
    "bye": (0.1, 0.9, 0.0),
    "never": (-1.0, 0.0, 0.0),
}


def saved_model(directory: Path) -> Path:
    """Save and return a model2vec model that knows WORDS."""
    import numpy as np
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.array(list(WORDS.values()), dtype=np.float32)
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(directory)
    return directory


def word_vector(text: str) -> tuple[float, ...]:
    """Return the sum of the vectors of a text's words."""
    rows = [WORDS.get(word, WORDS["[UNK]"]) for word in text.lower().split()] or [WORDS["[UNK]"]]
    return tuple(map(sum, zip(*rows, strict=True)))


class CountingEmbedder:
    """Embeds by words or by `reply`, and records the requests."""

    def __init__(self, reply: Callable[[Sequence[str]], Embeddings | Failure] | None = None) -> None:
        self.asked: list[list[str]] = []
        self._reply = reply

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        self.asked.append(list(texts))
        if self._reply is not None:
            return self._reply(texts)
        return Embeddings(
            tuple(word_vector(text) for text in texts), TokenUsage(input=len(texts), total=len(texts)), 0.001
        )
