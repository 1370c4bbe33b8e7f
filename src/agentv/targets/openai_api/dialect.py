"""Differences between servers that speak OpenAI's API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

_REASONING = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))", re.IGNORECASE)


def reasons(model: str) -> bool:
    """Whether a model is one of OpenAI's that reason, by its name: `o3`, `gpt-5-mini`, `openai/gpt-5`.

    They take neither `temperature` nor `max_tokens`. `gpt-5-chat-latest` does not reason.
    """
    return _REASONING.match(model) is not None


@dataclass(frozen=True, slots=True)
class Dialect:
    """Requirements and guarantees of one server.

    Attributes:
        name: of the provider.
        base_url: with which its paths begin, without a slash at the end.
        api_key: None: the server wants none.
        prices: the provider as the price list calls it, or its URL; None: its calls have no price.
        seed: the parameter for a seed.
        strict_schemas: it is known to keep to a JSON Schema, so that one is asked for.
        completion_tokens: the limit of an answer is called `max_completion_tokens`, and not `max_tokens`.
        fetches_pictures: it takes URLs of pictures.
        takes_documents: it takes PDFs.
        packed_vectors: it gives vectors as base64 too, a quarter of the size.
        embedding_model: the model that makes vectors.
        api_version: of Azure's API; None: the path says it.
        unreachable: what may be wrong where nobody listens.
        key_from: the variables that may give the key.
        needs_key: nothing can be asked without one.
    """

    name: str
    base_url: str
    embedding_model: str
    api_key: str | None = field(default=None, repr=False)
    prices: str | None = None
    seed: str = "seed"
    strict_schemas: bool = False
    completion_tokens: bool = False
    fetches_pictures: bool = True
    takes_documents: bool = True
    packed_vectors: bool = False
    api_version: str | None = None
    unreachable: str | None = None
    key_from: tuple[str, ...] = ()
    needs_key: bool = False

    @property
    def keyless(self) -> bool:
        """Whether a required key is missing."""
        return self.needs_key and not self.api_key

    def url(self, path: str, model: str) -> str:
        """The address of a path of the API; Azure's older one names the deployment and the version in it."""
        if self.api_version is None:
            return f"{self.base_url}{path}"
        deployment = "" if path == "/responses" else f"/deployments/{quote(model)}"
        return f"{self.base_url}{deployment}{path}?api-version={quote(self.api_version)}"

    def credentials(self) -> dict[str, str]:
        """The headers that hold the key, if there is one."""
        if not self.api_key:
            return {}
        found = {"api-key": self.api_key} if self.name == "azure" else {}
        return found if self.api_version is not None else {"Authorization": f"Bearer {self.api_key}", **found}
