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
    "agent-rubric": "write it in an eval file, with a workspace and an agent as its judge",
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

SCORED = OWN_THRESHOLD - {"assert-set", "cost", "latency", "levenshtein"}
"""Those of them that count a score between 0 and 1 in promptfoo."""

GRADED = frozenset({"factuality", "javascript", "llm-rubric", "python", "webhook"})
"""Types, by our names, that may pass with a score below 1."""

THRESHOLDS: Mapping[str, float] = dict.fromkeys(
    ("answer-relevance", "context-faithfulness", "context-recall", "context-relevance"), 0.5
)
"""Thresholds of theirs that are others than ours, where an assertion gives none."""

MEASURES: Mapping[str, str] = {"similar:dot": "dot", "similar:euclidean": "euclidean"}
"""Type that names how embeddings are compared → our `measure`."""

USED = frozenset({"skill-used", "trajectory:tool-used"})
"""Types that look for names among those that were used."""

SCHEMAS = frozenset({"contains-json", "is-json"})
"""Types whose value is a JSON Schema or the path of one."""

ASSERTION_KEYS: Mapping[str, str] = {"type": "type", "value": "value", "weight": "weight", "metric": "name"}
"""Keys of an assertion that need no thought: theirs → ours."""

CONFIGURED = frozenset({"javascript", "python", "webhook"})
"""Types, by our names, that take `config`."""

JUDGED = frozenset(
    {
        "answer-relevance",
        "closed-qa",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "factuality",
        "llm-rubric",
        "select-best",
        "trajectory:goal-success",
    }
)
"""Types, by our names, that ask a judge."""

CODE = frozenset({"javascript", "python"})
"""Types, by our names, whose value is code."""

RUBRICS = frozenset({"llm-rubric"})
"""Types, by our names, that take a judge prompt of their own."""

EMPTY_MARK = 0.000001
"""The least score that passes where any score above 0 does."""

UNREAD: Mapping[str, str] = {
    "disableConversationVar": "agentv has no variable '_conversation'",
    "runSerially": "cases do not depend on their order",
}
"""Options of a test that change no verdict → why they are left out."""

OPTIONS_INSTEAD: Mapping[str, str] = {
    "factuality": "set 'scores' on the assertion: subset, superset, equal, disagree, differ",
    "prefix": "put it into the prompt",
    "suffix": "put it into the prompt",
    "storeOutputAs": "a case cannot use the answers of other cases; write both questions as 'turns' of one case",
    "transformVars": "write the resulting variables under 'vars'",
}
"""Options of a test that stay → what to do instead."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "$schema": "write '# yaml-language-server: $schema=…' with the output of 'agentv schema'",
    "assertionTemplates": "",
    "metadata": "",
    "outputPath": "give the file when you run: agentv eval FILE --out PATH",
    "sharing": "results are local files; agentv has no sharing service",
    "tracing": "agentv keeps the transcript of every trial; assertions of type trace-… have no equivalent",
    "writeLatestResults": "a run writes its results to its own directory",
    "derivedMetrics": "compute them from the rows in the run's index.jsonl",
}
"""Keys that change no verdict, and are left out → what to do instead."""

REFUSED: Mapping[str, str] = {
    "assertScoringFunction": "set weights of assertions, or grade the answer in an assertion of type python",
    "extensions": "set up and clean up in a script around the run",
    "nunjucksFilters": "use Jinja filters, or prepare the value in 'vars'",
    "prompts": "write a suite for each prompt",
    "provider": "write 'target' with an agentv target",
    "providerOutput": "write a target with provider: mock, and the answers under 'responses'",
    "providers": "write 'target' with an agentv target",
    "redteam": "agentv does not generate attacks; write them as cases",
    "plugins": "agentv does not generate attacks; write them as cases",
    "strategies": "agentv does not generate attacks; write them as cases",
}
"""Keys that promptfoo reads and that stay, so that nothing runs before they are looked at → what to do instead."""

RUN_WITHOUT_EFFECT: Mapping[str, str] = {
    "cache": "agentv reuses answers only with --cache",
    "delay": "limit the calls with 'rate: {requests_per_minute: N}' of the target",
    "generateSuggestions": "agentv does not write prompts",
    "grader": "use --judge",
    "maxEvalTimeMs": "use --budget-usd or --max-errors to stop a run early",
    "noShare": "results are local files",
    "output": "give the file when you run: agentv eval FILE --out PATH",
    "progressBar": "use --no-progress",
    "runSerially": "cases do not depend on their order; use --workers 1",
    "share": "results are local files",
    "showProgressBar": "use --no-progress",
    "suggestionsCount": "agentv does not write prompts",
    "table": "agentv prints its own tables",
    "tableCellMaxLength": "agentv prints its own tables",
    "verbose": "use -v",
    "watch": "use --watch",
    "write": "every run is kept",
}
"""Keys of `evaluateOptions` and `commandLineOptions` that change no verdict, and are left out → what to do instead."""

LANGUAGE: Mapping[str, str] = {"template": "nunjucks", "missing_vars": "empty", "regex": "javascript"}
"""Keys of every translated suite, with `trim: false`: how promptfoo reads templates, patterns and texts."""

ORDER = (
    "name",
    "description",
    "tags",
    "template",
    "missing_vars",
    "regex",
    "trim",
    "targets",
    "judge",
    "run",
    "show_only",
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
