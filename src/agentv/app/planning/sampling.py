"""Which cases and prompts a command selects: `--sample`, `--shard`, `--prompt` (SPEC section 12)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from agentv.app.settings import EvalSettings
from agentv.engine.sample import DrawnCases, draw
from agentv.errors import UsageError
from agentv.model.suite.suite import Case, Suite

MOST_NAMED = 20
"""Prompts that a hint names."""


def sample_of(
    settings: EvalSettings,
    suites: tuple[Suite, ...],
    chosen: Callable[[Case], bool],
    *,
    root: str,
) -> DrawnCases | None:
    """The requested sample of the selected cases; None if all cases run.

    Args:
        settings: contain the size and the seed.
        suites: as loaded.
        chosen: cases that the filter and the tags select.
        root: absolute path that suite paths are relative to.
    """
    if settings.sample is None:
        return None
    return draw(suites, chosen, settings.sample, seed=settings.seed or 0, root=root)


def seeded(settings: EvalSettings) -> EvalSettings:
    """The settings with a new seed if they need one and have none."""
    if settings.seed is not None or (settings.sample is None and not settings.shuffle):
        return settings
    return replace(settings, seed=int.from_bytes(os.urandom(4)))


def shard_of(text: str) -> tuple[int, int]:
    """The numbers of the shard `I/N`.

    Raises:
        UsageError: the text does not have this form.
    """
    index, slash, of = text.partition("/")
    if not slash or not (index.isdecimal() and of.isdecimal()) or not 1 <= int(index) <= int(of):
        raise UsageError(f"--shard takes I/N, with I from 1 to N, found '{text}'", "for example: --shard 1/4")
    return int(index), int(of)


def check_prompts(settings: EvalSettings, suites: tuple[Suite, ...]) -> None:
    """Refuse prompts that no suite has.

    Raises:
        UsageError: there is one.
    """
    known = [name for suite in suites for one, label in suite.prompts.items() for name in (one, label) if name]
    for name in settings.prompts:
        if name not in known:
            from agentv.authoring.source.nearest import did_you_mean

            listed = ", ".join(dict.fromkeys(known[:MOST_NAMED]))
            hint = did_you_mean(name, known) or (f"the prompts are {listed}" if known else "no suite has prompts")
            raise UsageError(f"--prompt {name}: no suite has this prompt", hint)
