"""Settings that all providers of OpenAI's API have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from agentv.model.values.values import Json
from agentv.registry.fields import Between, Doc, NoSecrets, Text, Verbatim
from agentv.targets.model_api.settings import ModelSettings
from agentv.targets.openai_api.dialect import Dialect


@dataclass(frozen=True, slots=True)
class OpenAISettings(ModelSettings):
    """What may be said of a request to a server that speaks OpenAI's API, and which server it is."""

    embeds: ClassVar[bool] = True

    response_format: Annotated[
        Json, Verbatim(), NoSecrets(), Doc("`json_object`, a JSON Schema for the answer, or an object of the API")
    ] = None
    api: Annotated[Literal["chat", "responses"], Doc("which API: `chat` (chat completions) or `responses`")] = "chat"
    frequency_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for repeated tokens")] = None
    presence_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for tokens already present")] = None
    seed: Annotated[int | None, Doc("sampling seed; makes answers repeatable where the server supports it")] = None
    reasoning_effort: Annotated[Text | None, Doc("for models that reason: `minimal`, `low`, `medium`, `high`, …")] = (
        None
    )
    strict_schemas: Annotated[
        bool | None,
        Doc("request verdicts as JSON Schema; by default only where the server is known to follow it, else as text"),
    ] = None
    tool_calls_as_output: Annotated[
        bool | None,
        Doc("an answer that calls tools is the JSON of the calls, or of the message if it has text; as in promptfoo"),
    ] = None
    embedding_model: Annotated[Text | None, Doc("model that `similar` uses")] = None

    def dialect(self) -> Dialect:
        """The server that is meant, and what it wants."""
        raise NotImplementedError
