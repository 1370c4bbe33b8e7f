"""`--sample N --seed S`: which cases a run draws, and how the same ones are drawn again (SPEC section 12)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agentv.app.settings import EvalSettings
from agentv.engine.sample import Sample, draw
from agentv.model.suite import Case, Suite


def sample_of(
    settings: EvalSettings,
    suites: tuple[Suite, ...],
    chosen: Callable[[Case], bool],
    *,
    root: str,
    record: Path | None,
) -> Sample | None:
    """The sample that was asked for, out of the chosen cases; None where all take part.

    Args:
        settings: say how many, and the seed. Without one, that of the run that goes on, else a new one.
        suites: as loaded.
        chosen: which of their cases the filter and the tags leave.
        root: absolute path that the places of suites count from.
        record: the `run.json` of the run that goes on.
    """
    if settings.sample is None:
        return None
    seed = settings.seed if settings.seed is not None else _seed_of(record)
    return draw(suites, chosen, settings.sample, seed=_new_seed() if seed is None else seed, root=root)


def _seed_of(record: Path | None) -> int | None:
    """The seed that a run was begun with."""
    try:
        run: Any = msgspec.json.decode(record.read_bytes()) if record is not None else None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # who opens the run's directory says what is wrong with it
    said = run.get("settings") if isinstance(run, Mapping) else None
    seed = said.get("seed") if isinstance(said, Mapping) else None
    return seed if isinstance(seed, int) else None


def _new_seed() -> int:
    return int.from_bytes(os.urandom(4))
