"""promptfoo's providers and ours, as data.

Source: promptfoo's documentation of providers, and the base URLs that each service documents for OpenAI's API.
"""

from __future__ import annotations

from collections.abc import Mapping

PROVIDERS: Mapping[str, str] = {
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
    "cohere:": "cohere:",
    "deepseek:": "deepseek:",
    "fireworks:": "fireworks:",
    "google:embedding:": "gemini:",
    "google:embeddings:": "gemini:",
    "google:": "gemini:",
    "groq:": "groq:",
    "huggingface:chat:": "huggingface:",
    "litellm:": "litellm:",
    "mistral:": "mistral:",
    "ollama:chat:": "ollama:",
    "ollama:completion:": "ollama:",
    "ollama:embeddings:": "ollama:",
    "ollama:": "ollama:",
    "openai:chat:": "openai:",
    "openai:embedding:": "openai:",
    "openai:embeddings:": "openai:",
    "openrouter:": "openrouter:",
    "palm:": "gemini:",
    "perplexity:": "perplexity:",
    "togetherai:": "together:",
    "vertex:": "vertex:",
    "xai:": "xai:",
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
"""What ids begin with that look like those of models, and mean another API than a model's answers."""

SERVERS: Mapping[str, tuple[str, str]] = {
    "cerebras:": ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "databricks:": ("{{ env.DATABRICKS_WORKSPACE_URL }}/serving-endpoints", "DATABRICKS_TOKEN"),
    "github:": ("https://models.github.ai/inference", "GITHUB_TOKEN"),
    "hyperbolic:": ("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    "llamaapi:": ("https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    "nscale:": ("https://inference.api.nscale.com/v1", "NSCALE_SERVICE_TOKEN"),
    "truefoundry:": ("https://llm-gateway.truefoundry.com", "TRUEFOUNDRY_API_KEY"),
}
"""What the id of a service that speaks OpenAI's API begins with → its base URL, and the variable with its key."""

SERVICE_HEADERS: Mapping[str, Mapping[str, str]] = {
    "truefoundry:": {"metadata": "X-TFY-METADATA", "loggingConfig": "X-TFY-LOGGING-CONFIG"},
}
"""Settings of such a service that it takes as JSON in a header."""

SERVICE_PARAMETERS = frozenset({"iteration_limit", "mcp_servers"})
"""Settings of such a service that it takes beside those of OpenAI's API."""

SAGEMAKER = ("sagemaker:huggingface:", "sagemaker:jumpstart:")
"""What the ids of endpoints of Amazon SageMaker begin with that take a text as `inputs`, as LiteLLM sends it."""

NOT_CHAT = ("completion:", "embedding:", "embeddings:", "image:", "moderation:", "responses:", "speech:", "tts:")
"""What follows the name of such a service where another API than chat completions is meant."""

LOCAL_SERVERS: Mapping[str, str] = {
    "docker:": "{{ env.DOCKER_MODEL_RUNNER_BASE_URL | default('http://localhost:12434') }}/engines/v1",
    "llamafile:": "http://localhost:8080/v1",
    "localai:chat:": "http://localhost:8080/v1",
    "vllm:": "http://localhost:8000/v1",
}
"""The same for servers on this machine, which need no key."""

RESPONSES: Mapping[str, str] = {
    "azure:responses:": "azure:",
    "azureopenai:responses:": "azure:",
    "openai:responses:": "openai:",
}
"""The ids of those that mean the responses API."""

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
"""What the id of a provider of embeddings begins with → what ours does."""

ALIKE = frozenset({"echo"})
"""Providers of the same name."""

AGENTS: Mapping[str, str] = {
    "anthropic:claude-agent-sdk": "claude",
    "anthropic:claude-code": "claude",
    "openai:codex": "codex",
    "openai:codex-sdk": "codex",
    "openai:codex-app-server": "codex",
    "opencode": "opencode",
}
"""Providers that run a coding agent → its name here."""

AGENT_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("apiKey", "api_key"), "api_key"),
    **dict.fromkeys(("base_url", "baseUrl"), "base_url"),
    **{key: key for key in ("model", "max_turns", "append_system_prompt")},
    "custom_system_prompt": "system_prompt",
    "model_reasoning_effort": "reasoning_effort",
    "working_dir": "cwd",
}
"""Settings of coding agents → ours."""

PERMISSIONS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "claude": {"permission_mode": frozenset({"acceptEdits", "bypassPermissions"})},
    "codex": {"sandbox_mode": frozenset({"", "workspace-write", "danger-full-access"})},
}
"""Coding agent → the setting that lets it change files, with the values that do; the empty one: without it, it may."""

PYTHON = (".py",)
JAVASCRIPT = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts")
DOCUMENTS = (".yaml", ".yml", ".json")
"""Suffixes of files that a `file://` provider names."""

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
"""Providers, by our names, whose calls of tools have OpenAI's form in promptfoo."""

SENT: Mapping[str, frozenset[str]] = {
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
"""Provider, by our name → settings that promptfoo sends as they are, and that only `extra` can hold here."""

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

RETRIES = "maxRetries"
