"""Older spellings and places of keys (SPEC sections 3, 4, 7.3 and 12)."""

from __future__ import annotations

from collections.abc import KeysView, Mapping

from msgspec import Struct, field

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.schema import (
    AuthoredCase,
    AuthoredDefaultTest,
    AuthoredOptions,
    AuthoredRetry,
    AuthoredRun,
    AuthoredSuite,
    AuthoredTarget,
    AuthoredTemplate,
    AuthoredTurn,
)
from agentv.authoring.source.nearest import MEANT


class Spellings(Struct, frozen=True):
    """The keys of one kind of mapping.

    Attributes:
        cls: declares the canonical keys.
        older: older key → canonical key.
        nested: key of a nested mapping → (key in it → canonical key here). Its keys move to this mapping.
        not_yet: known keys that are not supported yet.
        tolerates: whether `validate` only warns of unsupported keys.
        no_effect: paths of keys that are ignored, also by AgentV.
        equal: spellings that are not reported as older.
    """

    cls: type
    older: Mapping[str, str]
    nested: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    not_yet: frozenset[str] = frozenset()
    tolerates: bool = True
    no_effect: frozenset[str] = frozenset()
    equal: frozenset[str] = frozenset()

    @property
    def canonical(self) -> KeysView[str]:
        """The keys that need no translation."""
        return shape_of(self.cls).rules.keys()

    @property
    def superseded(self) -> Mapping[str, str]:
        """Older key → canonical key to suggest instead."""
        return {old: new for old, new in self.older.items() if old not in self.equal}

    @property
    def known(self) -> KeysView[str]:
        """All known keys in a fixed order, for hints about misspelt keys."""
        inner = (f"{outer}.{key}" for outer, keys in self.nested.items() for key in keys)
        to_come = (key for key in self.not_yet if key.removesuffix("s") not in MEANT)  # keys of other tools
        return dict.fromkeys((*sorted(self.canonical), *self.older, *self.nested, *inner, *sorted(to_come))).keys()

    def spelled(self, key: str) -> list[str]:
        """Every spelling of a key in the mapping itself, the canonical one first."""
        return [key, *(older for older, canonical in self.older.items() if canonical == key)]


_ASSERT = {"assertions": "assert", "evaluators": "assert"}

SUITE = Spellings(
    AuthoredSuite,
    older={
        "target": "targets",
        "provider": "targets",
        "providers": "targets",
        "input_messages": "input",
        **_ASSERT,
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
            **_ASSERT,
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
    not_yet=frozenset({"scenarios", "derived_metrics", "nunjucks_filters", "output_path"}),
    no_effect=frozenset({"defaults.system_message"}),
    equal=frozenset({"target"}),
)

RUN = Spellings(
    AuthoredRun,
    older={
        "max_concurrency": "workers",
        "maxConcurrency": "workers",
        "timeout_seconds": "timeout_s",
        "timeout_ms": "timeout_s",
        "trials": "repeat",
        "fail_on_error": "max_errors",
    },
    not_yet=frozenset({"delay", "filter_range", "generate_suggestions", "max_eval_time_ms"}),
    tolerates=False,
)

CASE = Spellings(
    AuthoredCase,
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
        **_ASSERT,
        "sidecar": "metadata",
        "timeout_seconds": "timeout_s",
    },
    nested={
        "execution": {
            "target": "target",
            "judge": "judge",
            "skip_defaults": "skip_defaults",
            "assert": "assert",
            **_ASSERT,
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
    equal=frozenset(f"execution.{key}" for key in ("target", "judge", "assert", "threshold", "repeat", "timeout_s")),
)

TURN = Spellings(AuthoredTurn, {older: key for older, key in CASE.older.items() if key in shape_of(AuthoredTurn).rules})

DEFAULT_TEST = Spellings(
    AuthoredDefaultTest,
    older=_ASSERT,
    not_yet=frozenset({"assert_scoring_function", "prompts", "provider", "providers"}),
)

OPTIONS = Spellings(
    AuthoredOptions,
    older={"provider": "judge", "rubric_prompt": "prompt", "rubricPrompt": "prompt"},
    not_yet=frozenset({"prefix", "suffix", "store_output_as", "storeOutputAs", "run_serially", "runSerially"}),
    tolerates=False,
)

TEMPLATE = Spellings(AuthoredTemplate, older=_ASSERT)

TARGET = Spellings(
    AuthoredTarget,
    older={
        "id": "name",
        "label": "name",
        "judge_target": "judge",
        "grader_target": "judge",
        "timeout_seconds": "timeout_s",
        "max_retries": "retry.max_retries",
        "maxRetries": "retry.max_retries",
        **{key: f"retry.{key}" for key in shape_of(AuthoredRetry).names if key.startswith("retry_")},
    },
)
