"""Every mode of a rubric with the shape of its verdicts: those of `llm-rubric`, and those of the types beside it."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.judge.shapes import SHAPES, Shape
from agentv.judge.typed_shapes import TYPED
from agentv.model.rubric import RubricMode

MODES: Mapping[RubricMode, Shape] = {**SHAPES, **TYPED}
"""How a verdict of a mode is told from other JSON objects, and read."""
