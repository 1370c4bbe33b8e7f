"""Older keys of a JSON Schema as patterns: editors complete what stands in `properties`, and nothing else.

No annotation would do: `deprecated` alone keeps no editor from offering a key.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agentv.authoring.fields.json_kinds import Schema


def older_as_patterns(schema: Any) -> Any:
    """The same schema, with deprecated properties moved to `patternProperties`; those that are equal share one."""
    if isinstance(schema, list):
        return [older_as_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: Schema = {key: one if key in _PLAIN else older_as_patterns(one) for key, one in schema.items()}
    properties = found.get("properties", {})
    older = {key: one for key, one in properties.items() if _is_older(one)} if isinstance(properties, dict) else {}
    if older:
        found["properties"] = {key: one for key, one in properties.items() if key not in older}
        found["patternProperties"] = {**_patterns(older), **found.get("patternProperties", {})}
    return found


_PLAIN = frozenset({"enum", "const", "default", "required"})
"""Keywords whose values are no schemas."""


def _is_older(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("deprecated") is True


def _patterns(older: dict[str, Schema]) -> dict[str, Schema]:
    """One pattern for all keys with equal schemas."""
    keys: dict[str, list[str]] = {}
    for key, schema in older.items():
        keys.setdefault(json.dumps(schema, sort_keys=True), []).append(key)
    return {f"^(?:{'|'.join(map(re.escape, one))})$": older[one[0]] for one in keys.values()}
