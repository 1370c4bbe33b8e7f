"""Older spellings, as data, and their translation to the canonical ones (SPEC sections 1, 3, 4 and 7)."""

from __future__ import annotations

from collections.abc import KeysView, Mapping

from msgspec import Struct, field

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, is_empty, kind_of
from agentv.authoring.source.other_programs import MEANT
from agentv.authoring.source.report import Report


class Spellings(Struct, frozen=True):
    """The keys of one kind of mapping.

    Attributes:
        canonical: the keys that need no translation.
        older: older key → canonical key.
        nested: key of a nested mapping → (key in it → canonical key here). The nested mapping is dissolved.
        not_yet: keys that are known and not built yet.
        tolerated: those of them that `validate` only warns of.
        equal: spellings as good as the canonical one.
    """

    canonical: frozenset[str]
    older: Mapping[str, str]
    nested: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    not_yet: frozenset[str] = frozenset()
    tolerated: frozenset[str] = frozenset()
    equal: frozenset[str] = frozenset()

    @property
    def superseded(self) -> Mapping[str, str]:
        """Older key → the canonical one to offer in its place."""
        return {old: new for old, new in self.older.items() if old not in self.equal}

    @property
    def known(self) -> KeysView[str]:
        """All known keys, for the hint at a misspelt one; always in the same order."""
        inner = (f"{outer}.{key}" for outer, keys in self.nested.items() for key in keys)
        to_come = (key for key in self.not_yet if key.removesuffix("s") not in MEANT)  # those are other programs' words
        return dict.fromkeys((*sorted(self.canonical), *self.older, *self.nested, *inner, *sorted(to_come))).keys()

    def spelled(self, key: str) -> list[str]:
        """Every spelling of a canonical key in the mapping itself, the canonical one first."""
        return [key, *(older for older, canonical in self.older.items() if canonical == key)]


_SUITE_NOT_YET = frozenset(
    {
        "scenarios",
        "derived_metrics",
        "nunjucks_filters",
        "output_path",
    }
)

SUITE = Spellings(
    canonical=frozenset(
        [
            "name",
            "description",
            "version",
            "author",
            "license",
            "category",
            "tags",
            "metadata",
            "governance",
            "requires",
            "targets",
            "prompts",
            "prompt",
            "input",
            "input_files",
            "assert",
            "default_test",
            "threshold",
            "template",
            "missing_vars",
            "regex",
            "trim",
            "require_all",
            "default_provider",
            "triggering",
            "exam",
            "show_only",
            "cluster",
            "preprocessors",
            "run",
            "env",
            "tests",
            "judge",
            "workspace",
            "sandbox",
            "variants",
            "environment",
            "extensions",
            "tools",
            "limits",
        ]
    ),
    older={
        "target": "targets",
        "provider": "targets",
        "providers": "targets",
        "input_messages": "input",
        "assertions": "assert",
        "evaluators": "assert",
        "evaluator": "assert",
        "defaultTest": "default_test",
        "evaluate_options": "run",
        "evaluateOptions": "run",
        "evalcases": "tests",
        "eval_cases": "tests",
        "cases": "tests",
        "timeout_seconds": "run.timeout_s",
    },
    nested={
        "defaults": {"provider": "targets", "target": "targets", "grader": "judge", "judge": "judge"},
        "execution": {
            "target": "targets",
            "targets": "targets",
            "assert": "assert",
            "assertions": "assert",
            "evaluators": "assert",
            "threshold": "threshold",
            "judge": "judge",
            "workers": "run.workers",
            "max_concurrency": "run.workers",
            "repeat": "run.repeat",
            "trials": "run.trials",
            "aggregate": "run.aggregate",
            "budget_usd": "run.budget_usd",
            "budgetUsd": "run.budget_usd",
            "budget_tokens": "run.budget_tokens",
            "cache": "run.cache",
            "fail_on_error": "run.fail_on_error",
            "failOnError": "run.fail_on_error",
            "workspace": "workspace",
            "timeout_seconds": "run.timeout_s",
            "timeout_s": "run.timeout_s",
            "retry": "run.retry",
        },
    },
    not_yet=_SUITE_NOT_YET,
    tolerated=_SUITE_NOT_YET,
    equal=frozenset({"target"}),
)

RUN = Spellings(
    canonical=frozenset(
        [
            "workers",
            "repeat",
            "aggregate",
            "timeout_s",
            "max_errors",
            "budget_usd",
            "budget_tokens",
            "trust_data",
            "cluster",
            "cache",
            "retry",
            "max_turns",
            "max_tool_calls",
            "on_limit",
            "gate",
            "min_pass_rate",
        ]
    ),
    older={
        "max_concurrency": "workers",
        "maxConcurrency": "workers",
        "timeout_seconds": "timeout_s",
        "timeout_ms": "timeout_s",
        "trials": "repeat",
        "fail_on_error": "max_errors",
    },
    not_yet=frozenset({"delay", "filter_range", "generate_suggestions", "max_eval_time_ms"}),
)

CASE = Spellings(
    canonical=frozenset(
        [
            "id",
            "description",
            "criteria",
            "input",
            "input_files",
            "expected_output",
            "vars",
            "expand",
            "assert",
            "rubrics",
            "skip_defaults",
            "metadata",
            "governance",
            "suite",
            "options",
            "threshold",
            "repeat",
            "timeout_s",
            "tags",
            "target",
            "judge",
            "turns",
            "mode",
            "aggregation",
            "on_turn_failure",
            "window_size",
            "conversation_id",
            "depends_on",
            "on_dependency_failure",
            "solution",
            "workspace",
            "sandbox",
            "environment",
            "tools",
            "user",
            "max_turns",
            "max_tool_calls",
            "on_limit",
            "limits",
        ]
    ),
    older={
        "name": "id",
        "dataset": "suite",
        "provider": "target",
        "expected_outcome": "criteria",
        "outcome": "criteria",
        "input_messages": "input",
        "messages": "input",
        "prompt": "input",
        "expected_messages": "expected_output",
        "reference_answer": "expected_output",
        "assertions": "assert",
        "evaluators": "assert",
        "sidecar": "metadata",
        "timeout_seconds": "timeout_s",
    },
    nested={
        "execution": {
            "target": "target",
            "judge": "judge",
            "skip_defaults": "skip_defaults",
            "assert": "assert",
            "assertions": "assert",
            "evaluators": "assert",
            "threshold": "threshold",
            "repeat": "repeat",
            "timeout_s": "timeout_s",
            "timeout_seconds": "timeout_s",
            "workspace": "workspace",
        },
        "run": {
            "threshold": "threshold",
            "repeat": "repeat",
            "timeout_s": "timeout_s",
            "timeout_seconds": "timeout_s",
            "budget_usd": "budget_usd",
        },
    },
    not_yet=frozenset({"assert_scoring_function", "budget_usd", "prompts", "providers"}),
    tolerated=frozenset({"assert_scoring_function", "budget_usd", "prompts", "providers"}),
    equal=frozenset(f"execution.{key}" for key in ("target", "judge", "assert", "threshold", "repeat", "timeout_s")),
)

TURN = Spellings(
    canonical=frozenset({"input", "criteria", "expected_output", "assert"}),
    older={
        "expected_outcome": "criteria",
        "outcome": "criteria",
        "input_messages": "input",
        "messages": "input",
        "prompt": "input",
        "expected_messages": "expected_output",
        "reference_answer": "expected_output",
        "assertions": "assert",
        "evaluators": "assert",
    },
)

DEFAULT_TEST = Spellings(
    canonical=frozenset(["vars", "expand", "metadata", "assert", "threshold", "options"]),
    older={"assertions": "assert", "evaluators": "assert"},
    not_yet=frozenset({"assert_scoring_function", "prompts", "provider", "providers"}),
    tolerated=frozenset({"assert_scoring_function", "prompts", "provider", "providers"}),
)

OPTIONS = Spellings(
    canonical=frozenset(["judge", "prompt", "transform", "repeat"]),
    older={"provider": "judge", "rubric_prompt": "prompt", "rubricPrompt": "prompt"},
    not_yet=frozenset({"prefix", "suffix", "store_output_as", "storeOutputAs", "run_serially", "runSerially"}),
)

TEMPLATE = Spellings(
    canonical=frozenset({"assert", "name", "description"}), older={"assertions": "assert", "evaluators": "assert"}
)

TARGET = Spellings(
    canonical=frozenset(
        [
            "name",
            "provider",
            "judge",
            "env",
            "workers",
            "timeout_s",
            "retry",
            "rate",
            "price",
            "allow_empty",
            "thoughts",
            "fingerprint",
        ]
    ),
    older={
        "id": "name",
        "label": "name",
        "judge_target": "judge",
        "grader_target": "judge",
        "timeout_seconds": "timeout_s",
    },
)

SETTINGS = {
    "arguments": "args",
    "binary": "command",
    "command_template": "command",
    "executable": "command",
    "api_format": "api",
    "deployment": "model",
    "deploymentName": "model",
    "variant": "model",
    "endpoint": "base_url",
    "resource": "base_url",
    "resourceName": "base_url",
    "thinking_budget": "thinking",
    "thinkingBudget": "thinking",
    "attachments_format": "files_format",
    "apiKey": "api_key",
    "apiBaseUrl": "base_url",
    "baseURL": "base_url",
    "baseUrl": "base_url",
    "api_base": "base_url",
    "apiVersion": "api_version",
    "maxTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "systemPrompt": "system",
    "system_prompt": "system",
    "systemInstruction": "system",
    "extra_body": "extra",
    "passthrough": "extra",
}
"""Older spellings among a provider's own settings: AgentV's, promptfoo's, and those of the providers' SDKs."""

PROVIDERS = {
    "azure-openai": "azure",
    "azureopenai": "azure",
    "claude-cli": "claude",
    "claude-code": "claude",
    "claude-sdk": "claude",
    "codex-app-server": "codex",
    "codex-cli": "codex",
    "codex-sdk": "codex",
    "copilot": "copilot-cli",
    "copilot-sdk": "copilot-cli",
    "fireworks-ai": "fireworks",
    "google": "gemini",
    "google-gemini": "gemini",
    "hugging-face": "huggingface",
    "mini-swe": "mini-swe-agent",
    "pi": "pi-cli",
    "pi-coding-agent": "pi-cli",
    "pi-rpc": "pi-cli",
    "pi-sdk": "pi-cli",
    "together-ai": "together",
    "togetherai": "together",
    "vertex-ai": "vertex",
}
"""Older names of providers, in kebab-case: AgentV's, promptfoo's and LiteLLM's."""

SINGULAR = frozenset({"target"})
"""Spellings that are as canonical as the one that they are translated to."""

ASSERTION_TYPES = {
    "llm-grader": "llm-rubric",
    "llm-judge": "llm-rubric",
    "rubric": "llm-rubric",
    "rubrics": "llm-rubric",
    "g-eval": "llm-rubric",
    "model-graded-closedqa": "closed-qa",
    "model-graded-factuality": "factuality",
    "matches": "regex",
    "code-grader": "script",
    "code-judge": "script",
    "composite": "assert-set",
    "skill-trigger": "skill-used",
}
"""Older names of assertion types, in kebab-case."""


class Translated(Struct, frozen=True):
    """A mapping with canonical keys.

    Attributes:
        items: canonical key → value. `run.x` keys come out of a dissolved `execution`.
        spelled: canonical key → the key as written.
        map: the mapping with the keys as places, for positions.
    """

    items: dict[str, Node]
    spelled: dict[str, str]
    map: MapNode


def translate(node: MapNode, spellings: Spellings, report: Report, *, for_run: bool = True) -> Translated:
    """The mapping with canonical keys. Two spellings of one key are reported; so is what is not built yet."""
    if node.items.keys() <= spellings.canonical:
        return Translated(node.items, {}, node)
    return _Translation(spellings, report, for_run=for_run).of(node)


class _Translation:
    def __init__(self, spellings: Spellings, report: Report, *, for_run: bool) -> None:
        self._spellings = spellings
        self._report = report
        self._for_run = for_run
        self._items: dict[str, Node] = {}
        self._keys: dict[str, Place] = {}
        self._spelled: dict[str, str] = {}

    def of(self, node: MapNode) -> Translated:
        spellings = self._spellings
        for key, value in node.items.items():
            at = node.keys[key]
            inside = spellings.nested.get(key)
            if key in spellings.not_yet:
                self._postpone(key, key, at)
            elif inside is None:
                self._put(spellings.older.get(key, key), key, value, at)
            elif isinstance(value, MapNode):
                self._dissolve(key, value, inside)
            elif not is_empty(value):
                self._report.error("bad-value", value, f"'{key}' must be a mapping, found {kind_of(value)}")
        return Translated(self._items, self._spelled, MapNode(self._items, self._keys, node.at))

    def _dissolve(self, outer: str, value: MapNode, inside: Mapping[str, str]) -> None:
        for key, item in value.items.items():
            at = value.keys[key]
            canonical = inside.get(key)
            if canonical in self._spellings.not_yet:
                self._postpone(canonical, f"{outer}.{key}", at)
            elif canonical is not None:
                self._put(canonical, f"{outer}.{key}", item, at)
            elif not key.startswith("x-"):
                self._put(f"{outer}.{key}", f"{outer}.{key}", item, at)  # unknown, as who reads the mapping says

    def _postpone(self, key: str, written: str, at: Place) -> None:
        """Say that a key is known and not built yet."""
        tolerated = key in self._spellings.tolerated and not self._for_run
        add = self._report.warning if tolerated else self._report.error
        add("not-yet", at, f"'{written}' is recognized but not supported yet")

    def _put(self, canonical: str, written: str, value: Node, at: Place) -> None:
        if canonical in self._items:
            other = self._spelled[canonical]
            self._report.error("two-spellings", at, f"'{written}' and '{other}' mean the same; keep one of them")
            return
        if written != canonical and written not in self._spellings.equal:
            self._report.older(written, self._singular(canonical, value), at)
        if written != canonical:
            self._report.spell(value, written, canonical)
        self._items[canonical] = value
        self._keys[canonical] = at
        self._spelled[canonical] = written

    def _singular(self, canonical: str, value: Node) -> str:
        """The key that is better for one value: `target`, where several are `targets`."""
        if isinstance(value, ListNode):
            return canonical
        spellings = self._spellings
        return next((one for one in spellings.equal if spellings.older.get(one) == canonical), canonical)


def type_name(written: str) -> tuple[str, bool]:
    """An assertion type as written → its canonical kebab-case name, and whether `not-` in front inverts it."""
    name = written.strip().replace("_", "-")
    inverted = False
    while name.startswith("not-"):
        name = name[4:]
        inverted = not inverted
    return ASSERTION_TYPES.get(name, name), inverted
