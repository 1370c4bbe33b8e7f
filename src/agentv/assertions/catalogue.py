"""The built-in assertion types by canonical name (SPEC section 7.2), imported on first use."""

from __future__ import annotations

from agentv.registry.extensions import ASSERTIONS, registered
from agentv.registry.fields import DeclaredAssertion, is_declared
from agentv.registry.plugins import NO_PLUGINS, PluginCode, PluginSource
from agentv.registry.types import AssertionType, Registry

TYPES: dict[str, str] = {
    "contains": "agentv.assertions.text.matching:Contains",
    "contains-any": "agentv.assertions.text.matching:ContainsAny",
    "contains-all": "agentv.assertions.text.matching:ContainsAll",
    "icontains": "agentv.assertions.text.matching:IContains",
    "icontains-any": "agentv.assertions.text.matching:IContainsAny",
    "icontains-all": "agentv.assertions.text.matching:IContainsAll",
    "starts-with": "agentv.assertions.text.matching:StartsWith",
    "ends-with": "agentv.assertions.text.matching:EndsWith",
    "equals": "agentv.assertions.text.matching:Equals",
    "regex": "agentv.assertions.text.matching:Regex",
    "levenshtein": "agentv.assertions.text.matching:Levenshtein",
    "word-count": "agentv.assertions.text.matching:WordCount",
    "min-tokens": "agentv.assertions.text.matching:MinTokens",
    "max-tokens": "agentv.assertions.text.matching:MaxTokens",
    "rouge-n": "agentv.assertions.text.similarity:RougeN",
    "bleu": "agentv.assertions.text.similarity:Bleu",
    "gleu": "agentv.assertions.text.similarity:Gleu",
    "similar": "agentv.assertions.text.embeddings:Similar",
    "is-json": "agentv.assertions.format.json:IsJson",
    "contains-json": "agentv.assertions.format.json:ContainsJson",
    "json-schema": "agentv.assertions.format.json:JsonSchema",
    "is-xml": "agentv.assertions.format.markup:IsXml",
    "contains-xml": "agentv.assertions.format.markup:ContainsXml",
    "is-html": "agentv.assertions.format.markup:IsHtml",
    "contains-html": "agentv.assertions.format.markup:ContainsHtml",
    "is-sql": "agentv.assertions.format.sql:IsSql",
    "contains-sql": "agentv.assertions.format.sql:ContainsSql",
    "is-refusal": "agentv.assertions.format.json:IsRefusal",
    "field-accuracy": "agentv.assertions.data:FieldAccuracy",
    "json-match": "agentv.assertions.data:JsonMatch",
    "latency": "agentv.assertions.measured:Latency",
    "cost": "agentv.assertions.measured:Cost",
    "token-usage": "agentv.assertions.measured:TokenUsageWithin",
    "execution-metrics": "agentv.assertions.measured:ExecutionMetrics",
    "finish-reason": "agentv.assertions.measured:FinishReason",
    "llm-rubric": "agentv.assertions.judged.rubric:LlmRubric",
    "factuality": "agentv.assertions.judged.questions:Factuality",
    "closed-qa": "agentv.assertions.judged.questions:ClosedQa",
    "answer-relevance": "agentv.assertions.judged.questions:AnswerRelevance",
    "trajectory:goal-success": "agentv.assertions.judged.questions:GoalSuccess",
    "context-faithfulness": "agentv.assertions.judged.retrieval:ContextFaithfulness",
    "context-recall": "agentv.assertions.judged.retrieval:ContextRecall",
    "context-relevance": "agentv.assertions.judged.retrieval:ContextRelevance",
    "triggering": "agentv.assertions.judged.triggering:Triggering",
    "select-best": "agentv.assertions.judged.questions:SelectBest",
    "script": "agentv.assertions.user_code.script_and_python:Script",
    "python": "agentv.assertions.user_code.script_and_python:PythonCode",
    "javascript": "agentv.assertions.user_code.script_and_python:JavaScriptCode",
    "webhook": "agentv.assertions.user_code.webhook:Webhook",
    "assert-set": "agentv.assertions.structure:AssertSet",
    **registered(ASSERTIONS),
}
"""Canonical name → class that declares its options, as `module:class`."""

NOT_YET: frozenset[str] = frozenset({"meteor"})
"""Names in SPEC section 7.2 that are not implemented yet."""


def registry(plugins: PluginSource = NO_PLUGINS) -> Registry[AssertionType]:
    """Return the registry of the built-in assertion types and those of plugins."""
    return Registry("assertion type", TYPES, _assertion_type, kind=ASSERTIONS, not_yet=NOT_YET, plugins=plugins)


def _assertion_type(name: str, options: type, plugin: PluginCode | None = None) -> AssertionType:
    declared = issubclass(options, DeclaredAssertion) and is_declared(options)
    if not declared or not hasattr(options, "grade"):
        place = f"{options.__module__}:{options.__qualname__}"
        raise TypeError(
            f"assertion type {name!r} is {place}, which must be a dataclass that derives from"
            " agentv.registry.fields.DeclaredAssertion and has a method 'grade'"
        )
    return AssertionType(name, options, plugin)
