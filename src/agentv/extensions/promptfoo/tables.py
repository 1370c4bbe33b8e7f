"""Tables of promptfoo's names, with agentv's or with hints.

Source: promptfoo's documentation (configuration reference, deterministic and model-graded metrics, providers), and the
base URLs that each service documents for OpenAI's API.
"""

from __future__ import annotations

from collections.abc import Mapping

_TEXT = frozenset({"equals", "regex", "starts-with", "word-count"})
_CONTAINS = frozenset({"contains", "contains-all", "contains-any", "icontains", "icontains-all", "icontains-any"})
_CONTAINS_FORM = frozenset({"contains-html", "contains-json", "contains-sql", "contains-xml"})
_IS = frozenset({"is-html", "is-json", "is-refusal", "is-sql", "is-xml"})
_MEASURED = frozenset({"bleu", "gleu", "levenshtein", "meteor", "rouge-n", "similar", "tool-call-f1"})
_OF_CONTEXT = frozenset({"answer-relevance", "context-faithfulness", "context-recall", "context-relevance"})
GRADED = frozenset({"factuality", "javascript", "llm-rubric", "python", "webhook"})
"""Types, by our names, that may pass with a score below 1."""

_TRAJECTORY = frozenset(
    f"trajectory:{name}" for name in ("goal-success", "step-count", "tool-args-match", "tool-sequence", "tool-used")
)
_CALLS = frozenset({"cost", "finish-reason", "latency", "select-best", "skill-used"})

SAME = _TEXT | _CONTAINS | _CONTAINS_FORM | _IS | _MEASURED | _OF_CONTEXT | GRADED | _TRAJECTORY | _CALLS
"""Types of assertions with the same name and meaning in both tools."""

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
"""Type that agentv does not have → what to do instead."""

OWN_THRESHOLD = _MEASURED | _OF_CONTEXT | {"assert-set", "cost", "latency"}
"""Types with their own `threshold`. For graded types, promptfoo's threshold is the minimum score."""

SCORED = OWN_THRESHOLD - {"assert-set", "cost", "latency", "levenshtein"}
"""Types with their own threshold that count as a score between 0 and 1 in promptfoo."""

THRESHOLDS: Mapping[str, float] = dict.fromkeys(_OF_CONTEXT, 0.5)
"""Default thresholds of promptfoo that differ from ours."""

MEASURES: Mapping[str, str] = {"similar:dot": "dot", "similar:euclidean": "euclidean"}
"""Type that selects how embeddings are compared → our `measure`."""

USED = frozenset({"skill-used", "trajectory:tool-used"})
"""Types that check which skills or tools were used."""

SCHEMAS = frozenset({"contains-json", "is-json"})
"""Types whose value is a JSON Schema or the path of one."""

ASSERTION_KEYS: Mapping[str, str] = {"type": "type", "value": "value", "weight": "weight", "metric": "name"}
"""Keys of an assertion that are only renamed: promptfoo's → ours."""

CONFIGURED = frozenset({"javascript", "python", "webhook"})
"""Types, by our names, that take `config`."""

CODE = frozenset({"javascript", "python"})
"""Types, by our names, whose value is code."""

RUBRICS = frozenset({"llm-rubric"})
"""Types, by our names, that take a judge prompt of their own."""

ANY_SCORE = 0.000001
"""Threshold of code that passes with any score above 0."""

UNUSED_OPTIONS: Mapping[str, str] = {
    "disableConversationVar": "agentv has no variable '_conversation'",
    "runSerially": "cases do not depend on their order",
}
"""Options of a test that change no verdict → why they are omitted."""

OPTIONS_INSTEAD: Mapping[str, str] = {
    "factuality": "set 'scores' on the assertion: subset, superset, equal, disagree, differ",
    "prefix": "put it into the prompt",
    "suffix": "put it into the prompt",
    "storeOutputAs": "a case cannot use the answers of other cases; write both questions as 'turns' of one case",
    "transformVars": "write the resulting variables under 'vars'",
}
"""Options of a test that have no equivalent → what to do instead."""

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
"""Keys that change no verdict and are omitted → what to do instead; omitted silently if it is empty."""

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
"""Keys that may change a verdict and have no equivalent, which is an error → what to do instead."""

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
"""Keys of `evaluateOptions` and `commandLineOptions` that change no verdict and are omitted → what to do instead."""

LANGUAGE: Mapping[str, str] = {"template": "nunjucks", "missing_vars": "empty", "regex": "javascript"}
"""Keys of every translated suite, besides `trim: false`, that select promptfoo's rules for templates and patterns."""

_ORDER_OF_SUITE = (
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
)
_ORDER_OF_CASES = ("env", "prompts", "input", "default_test", "id", "vars", "expand", "assert")
ORDER = (*_ORDER_OF_SUITE, "show_only", "threshold", *_ORDER_OF_CASES)
"""Order of the keys in an eval file and in its cases; other keys follow."""


_NAMES = ("cohere", "deepseek", "fireworks", "groq", "litellm", "mistral", "openrouter", "perplexity", "vertex", "xai")
PROVIDERS: Mapping[str, str] = {
    **{f"{name}:": f"{name}:" for name in _NAMES},
    "anthropic:messages:": "anthropic:",
    "anthropic:": "anthropic:",
    "azure:chat:": "azure:",
    "azure:embedding:": "azure:",
    "azure:embeddings:": "azure:",
    "azureopenai:chat:": "azure:",
    "azureopenai:embedding:": "azure:",
    "azureopenai:embeddings:": "azure:",
    "bedrock:completion:": "bedrock:",
    "bedrock:converse:": "bedrock:",
    "bedrock:": "bedrock:",
    "google:embedding:": "gemini:",
    "google:embeddings:": "gemini:",
    "google:": "gemini:",
    "huggingface:chat:": "huggingface:",
    "ollama:chat:": "ollama:",
    "ollama:completion:": "ollama:",
    "ollama:embeddings:": "ollama:",
    "ollama:": "ollama:",
    "openai:chat:": "openai:",
    "openai:embedding:": "openai:",
    "openai:embeddings:": "openai:",
    "palm:": "gemini:",
    "togetherai:": "together:",
}
"""Prefix of a provider's id → prefix of ours. The first match applies."""

OTHER_APIS = (
    "anthropic:completion:",
    "google:image:",
    "google:interactions:",
    "google:live:",
    "google:video:",
    "google:gemini-live",
    "litellm:embedding:",
    "litellm:embeddings:",
    "vertex:video:",
    "vertex:image:",
    "vertex:embedding:",
    "bedrock:agents:",
    "bedrock:embedding",
    "bedrock:kb:",
    "bedrock:nova-reel",
    "bedrock:nova-sonic",
    "cohere:embedding",
    "fireworks:completion:",
    "fireworks:embedding",
    "groq:responses:",
    "mistral:embedding",
    "togetherai:completion:",
    "togetherai:embedding",
    "xai:image:",
    "xai:responses:",
)
"""Prefixes of ids that look like those of models, but use another API."""

SERVERS: Mapping[str, tuple[str, str]] = {
    "cerebras:": ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "databricks:": ("{{ env.DATABRICKS_WORKSPACE_URL }}/serving-endpoints", "DATABRICKS_TOKEN"),
    "github:": ("https://models.github.ai/inference", "GITHUB_TOKEN"),
    "hyperbolic:": ("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    "llamaapi:": ("https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    "nscale:": ("https://inference.api.nscale.com/v1", "NSCALE_SERVICE_TOKEN"),
    "truefoundry:": ("https://llm-gateway.truefoundry.com", "TRUEFOUNDRY_API_KEY"),
}
"""Prefix of the ids of a service with OpenAI's API → its base URL, and the variable with its key."""

SAGEMAKER = ("sagemaker:huggingface:", "sagemaker:jumpstart:")
"""Prefixes of the ids of Amazon SageMaker endpoints that take text as `inputs`, as LiteLLM sends it."""

NOT_CHAT = ("completion:", "embedding:", "embeddings:", "image:", "moderation:", "responses:", "speech:", "tts:")
"""What follows the prefix of a server in an id that uses another API than chat completions."""

LOCAL_SERVERS: Mapping[str, str] = {
    "docker:": "{{ env.DOCKER_MODEL_RUNNER_BASE_URL | default('http://localhost:12434') }}/engines/v1",
    "llamafile:": "http://localhost:8080/v1",
    "localai:chat:": "http://localhost:8080/v1",
    "vllm:": "http://localhost:8000/v1",
}
"""Prefix of the ids of a local server with OpenAI's API, which needs no key → its base URL."""

RESPONSES: Mapping[str, str] = {
    "azure:responses:": "azure:",
    "azureopenai:responses:": "azure:",
    "openai:responses:": "openai:",
}
"""Prefix of an id that uses the Responses API → prefix of ours."""

EMBEDDERS: Mapping[str, str] = {
    "azure:embedding:": "azure:",
    "azure:embeddings:": "azure:",
    "google:embedding:": "gemini:",
    "bedrock:embedding:": "litellm:bedrock/",
    "bedrock:embeddings:": "litellm:bedrock/",
    "cohere:embedding:": "litellm:cohere/",
    "litellm:embedding:": "litellm:",
    "litellm:embeddings:": "litellm:",
    "mistral:embedding:": "litellm:mistral/",
    "vertex:embedding:": "litellm:vertex_ai/",
    "voyage:": "litellm:voyage/",
    "ollama:embedding:": "ollama:",
    "ollama:embeddings:": "ollama:",
    "openai:embedding:": "openai:",
    "openai:embeddings:": "openai:",
}
"""Prefix of the id of an embedding provider → prefix of ours."""

SAME_PROVIDERS = frozenset({"echo"})
"""Providers with the same name in both tools."""

AGENTS: Mapping[str, str] = {
    "anthropic:claude-agent-sdk": "claude",
    "anthropic:claude-code": "claude",
    "openai:codex": "codex",
    "openai:codex-sdk": "codex",
    "openai:codex-app-server": "codex",
    "opencode": "opencode",
}
"""Prefix of the ids of providers that run a coding agent → our name of the agent."""

AGENT_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("apiKey", "api_key"), "api_key"),
    **dict.fromkeys(("base_url", "baseUrl"), "base_url"),
    **{key: key for key in ("model", "max_turns", "append_system_prompt")},
    "custom_system_prompt": "system_prompt",
    "model_reasoning_effort": "reasoning_effort",
    "working_dir": "cwd",
}
"""Settings of coding agents: promptfoo's → ours."""

PERMISSIONS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "claude": {"permission_mode": frozenset({"acceptEdits", "bypassPermissions"})},
    "codex": {"sandbox_mode": frozenset({"", "workspace-write", "danger-full-access"})},
}
"""Coding agent → the setting that lets it change files, with the values that do; empty if it may by default."""

PYTHON = (".py",)
JAVASCRIPT = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts")
DOCUMENTS = (".yaml", ".yml", ".json")
"""Suffixes of files with providers, which `file://` may name."""

CHAT_COMPLETIONS = frozenset(
    {
        "azure",
        "deepseek",
        "fireworks",
        "groq",
        "huggingface",
        "mistral",
        "ollama",
        "openai",
        "openrouter",
        "perplexity",
        "together",
        "xai",
    }
)
"""Providers, by our names, whose tool calls have OpenAI's form in promptfoo."""

SENT_UNCHANGED: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"metadata", "service_tier", "store", "user"}),
    "perplexity": frozenset(
        {
            "return_images",
            "return_related_questions",
            "search_after_date_filter",
            "search_before_date_filter",
            "search_domain_filter",
            "search_recency_filter",
            "web_search_options",
        }
    ),
    "xai": frozenset({"search_parameters"}),
}
"""Provider, by our name → settings that promptfoo sends unchanged, and that only `extra` can contain here."""

UNUSED_SETTINGS: Mapping[str, str] = {
    "apiKeyRequired": "a server on this machine needs no key",
    "appendUsageToOutput": "usage is part of every result",
    "delay": "promptfoo does not read it there",
    "maxConcurrency": "promptfoo does not read it there",
    "options": "promptfoo does not read it there",
    "usage_tier": "costs come from the price list, or from the server",
    "inferenceModelType": "LiteLLM knows the models",
    "debug": "use -v",
    "cost": "costs come from the price list, or from the server",
    "includeDebugMetrics": "agentv writes its own results",
    "inputCost": "costs come from the price list, or from the server",
    "outputCost": "costs come from the price list, or from the server",
}
"""Settings of a provider that change no request → why they are not needed."""
