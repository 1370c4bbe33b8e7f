"""Plain data, as JSON knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What JSON can say. Sequences are lists or tuples, never strings."""

JsonObject: TypeAlias = Mapping[str, Json]

EMPTY: JsonObject = {}
"""The object without keys, shared; never written to."""
