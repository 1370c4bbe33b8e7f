"""Every mode of a rubric with the shape of its verdicts: those of `llm-rubric`, and those of the types beside it."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.judge.shapes import SHAPES, VerdictShape
from agentv.judge.typed_shapes import TYPED
from agentv.model.run.rubric import RubricMode

MODES: Mapping[RubricMode, VerdictShape] = {**SHAPES, **TYPED}
"""How a verdict of a mode is distinguished from other JSON objects, and read."""
