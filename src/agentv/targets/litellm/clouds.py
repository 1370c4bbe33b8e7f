"""`bedrock` and `vertex`: models of Amazon's and Google's clouds, which LiteLLM signs requests for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.model.values.values import JsonObject
from agentv.registry.fields import Doc, Nonempty, Text
from agentv.targets.litellm.target import LiteLLM


@dataclass(frozen=True, slots=True)
class Bedrock(LiteLLM):
    """Calls a model of Amazon Bedrock, through LiteLLM."""

    small_model: ClassVar[str | None] = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    route: ClassVar[str] = "bedrock/"

    model: Annotated[
        Text, Nonempty(), Doc("model ID or inference profile: `us.anthropic.claude-haiku-4-5-20251001-v1:0`")
    ]
    region: Annotated[Text | None, Doc("AWS region; defaults to AWS_REGION_NAME, then AWS_REGION")] = None

    def parameters(self) -> JsonObject:
        """The region, as LiteLLM calls it."""
        return {"aws_region_name": self.region} if self.region else {}


@dataclass(frozen=True, slots=True)
class Vertex(LiteLLM):
    """Calls a model of Google's Vertex AI, through LiteLLM."""

    small_model: ClassVar[str | None] = "gemini-2.5-flash"
    route: ClassVar[str] = "vertex_ai/"

    model: Annotated[Text, Nonempty(), Doc("model name: `gemini-2.5-pro`")]
    project: Annotated[Text | None, Doc("Google Cloud project; defaults to VERTEXAI_PROJECT")] = None
    location: Annotated[Text | None, Doc("region; defaults to VERTEXAI_LOCATION")] = None

    def parameters(self) -> JsonObject:
        """Project and location, as LiteLLM calls them."""
        given = {"vertex_project": self.project, "vertex_location": self.location}
        return {name: value for name, value in given.items() if value}
