"""The prompts of the project's library."""

from __future__ import annotations

from agentv.extensions.view.viewed.prompts import PromptList, WholePrompt, prompt_list, whole_prompt
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


def _prompts(context: ProjectContext, call: Call) -> PromptList:  # noqa: ARG001  # every handler has this signature
    return prompt_list(context.project)


def _prompt(context: ProjectContext, call: Call) -> WholePrompt:
    return whole_prompt(context.project, call.names["name"], context.project.runs())


ENDPOINTS = (
    Endpoint("/api/prompts", "The prompts of the library, with status and last exam.", PromptList, _prompts),
    Endpoint("/api/prompts/{name}", "A prompt: its texts, exam attempts and gates.", WholePrompt, _prompt),
)
