"""Every built-in assertion type by its canonical name (SPEC section 7.2); imported when it is first asked for."""

from __future__ import annotations

from agentv.registry.fields import DeclaredAssertion
from agentv.registry.table import Registry
from agentv.registry.types import AssertionType

PLUGINS = "agentv.assertions"
"""Entry point group under which installed packages offer further types."""

TYPES: dict[str, str] = {
    "contains": "agentv.assertions.text:Contains",
    "contains-any": "agentv.assertions.text:ContainsAny",
    "contains-all": "agentv.assertions.text:ContainsAll",
    "icontains": "agentv.assertions.text:IContains",
    "icontains-any": "agentv.assertions.text:IContainsAny",
    "icontains-all": "agentv.assertions.text:IContainsAll",
    "starts-with": "agentv.assertions.text:StartsWith",
    "ends-with": "agentv.assertions.text:EndsWith",
    "equals": "agentv.assertions.text:Equals",
    "regex": "agentv.assertions.text:Regex",
    "levenshtein": "agentv.assertions.text:Levenshtein",
    "word-count": "agentv.assertions.text:WordCount",
    "min-tokens": "agentv.assertions.text:MinTokens",
    "max-tokens": "agentv.assertions.text:MaxTokens",
    "rouge-n": "agentv.assertions.similarity:RougeN",
    "bleu": "agentv.assertions.similarity:Bleu",
    "gleu": "agentv.assertions.similarity:Gleu",
    "similar": "agentv.assertions.embeddings:Similar",
    "is-json": "agentv.assertions.format:IsJson",
    "contains-json": "agentv.assertions.format:ContainsJson",
    "json-schema": "agentv.assertions.format:JsonSchema",
    "is-xml": "agentv.assertions.xml_text:IsXml",
    "contains-xml": "agentv.assertions.xml_text:ContainsXml",
    "is-html": "agentv.assertions.html_text:IsHtml",
    "contains-html": "agentv.assertions.html_text:ContainsHtml",
    "is-sql": "agentv.assertions.sql:IsSql",
    "contains-sql": "agentv.assertions.sql:ContainsSql",
    "is-refusal": "agentv.assertions.format:IsRefusal",
    "field-accuracy": "agentv.assertions.data:FieldAccuracy",
    "json-match": "agentv.assertions.data:JsonMatch",
    "latency": "agentv.assertions.cost:Latency",
    "cost": "agentv.assertions.cost:Cost",
    "token-usage": "agentv.assertions.cost:TokenUsageWithin",
    "execution-metrics": "agentv.assertions.cost:ExecutionMetrics",
    "finish-reason": "agentv.assertions.cost:FinishReason",
    "tool-trajectory": "agentv.assertions.tool_calls:ToolTrajectory",
    "tool-call-f1": "agentv.assertions.tool_calls:ToolCallF1",
    "trajectory:tool-used": "agentv.assertions.trajectory:ToolUsed",
    "trajectory:tool-sequence": "agentv.assertions.trajectory:ToolSequence",
    "trajectory:tool-args-match": "agentv.assertions.trajectory:ToolArgsMatch",
    "trajectory:step-count": "agentv.assertions.trajectory:StepCount",
    "skill-used": "agentv.assertions.trajectory:SkillUsed",
    "llm-rubric": "agentv.assertions.rubric:LlmRubric",
    "factuality": "agentv.assertions.judged:Factuality",
    "closed-qa": "agentv.assertions.judged:ClosedQa",
    "answer-relevance": "agentv.assertions.judged:AnswerRelevance",
    "trajectory:goal-success": "agentv.assertions.judged:GoalSuccess",
    "context-faithfulness": "agentv.assertions.retrieval:ContextFaithfulness",
    "context-recall": "agentv.assertions.retrieval:ContextRecall",
    "context-relevance": "agentv.assertions.retrieval:ContextRelevance",
    "triggering": "agentv.assertions.triggering:Triggering",
    "select-best": "agentv.assertions.select_best:SelectBest",
    "script": "agentv.assertions.code:Script",
    "python": "agentv.assertions.code:PythonCode",
    "javascript": "agentv.assertions.javascript_code:JavaScriptCode",
    "webhook": "agentv.assertions.webhook:Webhook",
    "assert-set": "agentv.assertions.structure:AssertSet",
}
"""Name → where its options are declared."""

NOT_YET: frozenset[str] = frozenset(
    {
        "meteor",
    }
)
"""Names that SPEC section 7.2 lists and that are not built yet."""


def registry() -> Registry[AssertionType]:
    """The assertion types: the built-in ones, and those that installed packages offer."""
    return Registry("assertion type", TYPES, _assertion_type, not_yet=NOT_YET, plugins=PLUGINS)


def _assertion_type(name: str, options: type) -> AssertionType:
    declared = issubclass(options, DeclaredAssertion) and hasattr(options, "__dataclass_fields__")
    if not declared or not hasattr(options, "grade"):
        place = f"{options.__module__}:{options.__qualname__}"
        raise TypeError(
            f"assertion type {name!r} is {place}, which must be a dataclass that derives from"
            " agentv.registry.fields.DeclaredAssertion and has a method 'grade'"
        )
    return AssertionType(name, options)
