"""promptfoo's words and ours, as data.

Source: promptfoo's documentation (configuration reference, deterministic and model-graded metrics, providers).
"""

from __future__ import annotations

from collections.abc import Mapping

SAME = frozenset(
    {
        "answer-relevance",
        "bleu",
        "contains",
        "contains-all",
        "contains-any",
        "contains-html",
        "contains-json",
        "contains-sql",
        "contains-xml",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "cost",
        "equals",
        "factuality",
        "finish-reason",
        "gleu",
        "icontains",
        "icontains-all",
        "icontains-any",
        "is-html",
        "is-json",
        "is-refusal",
        "is-sql",
        "is-xml",
        "javascript",
        "latency",
        "levenshtein",
        "llm-rubric",
        "meteor",
        "python",
        "regex",
        "rouge-n",
        "select-best",
        "similar",
        "skill-used",
        "starts-with",
        "tool-call-f1",
        "trajectory:goal-success",
        "trajectory:step-count",
        "trajectory:tool-args-match",
        "trajectory:tool-sequence",
        "trajectory:tool-used",
        "webhook",
        "word-count",
    }
)
"""Types of the same name and meaning."""

RENAMED: Mapping[str, str] = {
    "g-eval": "llm-rubric",
    "model-graded-closedqa": "closed-qa",
    "model-graded-factuality": "factuality",
    "similar:cosine": "similar",
    "similar:dot": "similar",
    "similar:euclidean": "similar",
}

ABSENT: Mapping[str, str] = {
    "agent-rubric": "judge the answer with llm-rubric, or the agent's steps with tool-trajectory",
    "classifier": "call the classifier from an assertion of type python or script",
    "conversation-relevance": "judge the answer with llm-rubric",
    "f-score": "count in an assertion of type python, or use field-accuracy",
    "guardrails": "check the answer of the guardrail in an assertion of type python",
    "human": "judge the answer with llm-rubric",
    "is-valid-function-call": "check the call's arguments with trajectory:tool-args-match, or with json-schema",
    "is-valid-openai-function-call": "check the call's arguments with trajectory:tool-args-match, or with json-schema",
    "is-valid-openai-tools-call": "check the calls' arguments with trajectory:tool-args-match, or with json-schema",
    "max-score": "compare two runs with 'agentv compare'",
    "moderation": "call the moderation service from an assertion of type python or script",
    "perplexity": "agentv has no log probabilities; remove it",
    "perplexity-score": "agentv has no log probabilities; remove it",
    "pi": "judge the answer with llm-rubric",
    "ruby": "call the program from an assertion of type script",
    "search-rubric": "judge the answer with llm-rubric",
    "trace-error-spans": "check the steps with tool-trajectory or execution-metrics",
    "trace-span-count": "check the steps with tool-trajectory or execution-metrics",
    "trace-span-duration": "limit the time with latency or execution-metrics",
}
"""Type that agentv has not → what to do instead."""

OWN_THRESHOLD = frozenset(
    {
        "answer-relevance",
        "assert-set",
        "bleu",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "cost",
        "gleu",
        "latency",
        "levenshtein",
        "meteor",
        "rouge-n",
        "similar",
        "tool-call-f1",
    }
)
"""Types with a threshold of their own; of all others, it is the score that the grade must reach."""

GRADED = frozenset({"factuality", "javascript", "llm-rubric", "python", "webhook"})
"""Types, by our names, that may pass with a score below 1."""

THRESHOLDS: Mapping[str, float] = dict.fromkeys(
    ("answer-relevance", "context-faithfulness", "context-recall", "context-relevance"), 0.5
)
"""Thresholds of theirs that are others than ours, where an assertion gives none."""

MEASURES: Mapping[str, str] = {"similar:dot": "dot", "similar:euclidean": "euclidean"}
"""Type that names how embeddings are compared → our `measure`."""

TRIMMED = frozenset({"equals", "starts-with"})
"""Types that ignore white space at the ends here, and compare it there."""

USED = frozenset({"skill-used", "trajectory:tool-used"})
"""Types that look for names among those that were used."""

SCHEMAS = frozenset({"contains-json", "is-json"})
"""Types whose value is a JSON Schema or the path of one."""

ASSERTION_KEYS: Mapping[str, str] = {"type": "type", "value": "value", "weight": "weight", "metric": "name"}
"""Keys of an assertion that need no thought: theirs → ours."""

NOT_CONVERTED: Mapping[str, str] = {
    "rubricPrompt": "write the prompt under 'prompt'; it can use other variables: output, criteria, rubrics",
    "transform": "write a Jinja expression over 'output', a path such as $.a.b, or file.py:function",
    "contextTransform": "write 'context_transform': a Jinja expression over 'json', or a path such as $.a.b",
    "config": "an assertion of type python or script takes 'config'",
}
"""Keys of an assertion that stay as they are → what to do instead."""

PROVIDERS: Mapping[str, str] = {
    "anthropic:messages:": "anthropic:",
    "anthropic:": "anthropic:",
    "azure:chat:": "azure:",
    "azure:embedding:": "azure:",
    "azure:embeddings:": "azure:",
    "azureopenai:chat:": "azure:",
    "azureopenai:embedding:": "azure:",
    "azureopenai:embeddings:": "azure:",
    "google:embedding:": "gemini:",
    "google:embeddings:": "gemini:",
    "google:": "gemini:",
    "litellm:": "litellm:",
    "ollama:chat:": "ollama:",
    "ollama:completion:": "ollama:",
    "ollama:embeddings:": "ollama:",
    "openai:chat:": "openai:",
    "openai:embedding:": "openai:",
    "openai:embeddings:": "openai:",
    "openrouter:": "openrouter:",
}
"""What a provider's id begins with → what ours does; the first that fits."""

OTHER_APIS = (
    "anthropic:claude-agent-sdk",
    "anthropic:claude-code",
    "anthropic:completion:",
    "google:image:",
    "google:interactions:",
    "google:live:",
    "google:video:",
    "litellm:embedding:",
    "litellm:embeddings:",
)
"""What ids begin with that look like those above, and mean another API than a model's answers."""

THROUGH_LITELLM: Mapping[str, str] = {
    "bedrock:": "bedrock/",
    "cerebras:": "cerebras/",
    "cohere:": "cohere/",
    "deepseek:": "deepseek/",
    "fireworks:": "fireworks_ai/",
    "groq:": "groq/",
    "mistral:": "mistral/",
    "perplexity:": "perplexity/",
    "togetherai:": "together_ai/",
    "vertex:": "vertex_ai/",
    "xai:": "xai/",
}
"""What the id of a provider without a target of its own begins with → how LiteLLM calls its models."""

RESPONSES: Mapping[str, str] = {
    "azure:responses:": "azure:",
    "azureopenai:responses:": "azure:",
    "openai:responses:": "openai:",
}
"""The same of those that mean the responses API."""

EMBEDDERS: Mapping[str, str] = {
    "azure:embedding:": "azure:",
    "azure:embeddings:": "azure:",
    "google:embedding:": "gemini:",
    "litellm:embedding:": "litellm:",
    "litellm:embeddings:": "litellm:",
    "ollama:embedding:": "ollama:",
    "ollama:embeddings:": "ollama:",
    "openai:embedding:": "openai:",
    "openai:embeddings:": "openai:",
}
"""What the id of a provider of embeddings begins with → what ours does."""

ALIKE = frozenset({"echo"})
"""Providers of the same name."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "$schema": "write '# yaml-language-server: $schema=…' with the output of 'agentv schema'",
    "outputPath": "give the file when you run: agentv eval FILE --out PATH",
    "sharing": "results are local files; agentv has no sharing service",
    "writeLatestResults": "a run writes its results to its own directory",
}
"""Keys that change no verdict, and are left out → what to do instead."""

REFUSED: Mapping[str, str] = {
    "assertScoringFunction": "set weights of assertions, or grade the answer in an assertion of type python",
    "derivedMetrics": "compute them from the rows in the run's index.jsonl",
    "factuality": "set 'scores' on the assertion: subset, superset, equal, disagree, differ",
    "extensions": "set up and clean up in a script around the run",
    "nunjucksFilters": "use Jinja filters, or prepare the value in 'vars'",
    "options": "see the keys of cases and assertions",
    "prompts": "write a suite for each prompt",
    "provider": "write 'target' with an agentv target",
    "providers": "write 'target' with an agentv target",
    "redteam": "agentv does not generate attacks; write them as cases",
    "storeOutputAs": "a case cannot use the answers of other cases",
    "tracing": "agentv keeps the transcript of every trial; remove it",
}
"""Keys that stay, so that nothing runs before they are looked at → what to do instead."""

ORDER = (
    "name",
    "description",
    "tags",
    "targets",
    "judge",
    "run",
    "threshold",
    "env",
    "prompts",
    "input",
    "default_test",
    "id",
    "vars",
    "expand",
    "assert",
)
"""In which order people read the keys of an eval file and of its cases; the others stand behind."""

FILTERS: Mapping[str, str] = {
    "dump": "tojson",
    "nl2br": "replace",
}
"""Filters of Nunjucks that Jinja has not → its own."""
