"""The options of an entry of a custom type: its own keys, with `config:` merged in (SPEC section 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agentv.model.values.formatting import shorten
from agentv.model.values.values import Json, JsonObject
from agentv.registry.fields import Issue


def merge_config(options: JsonObject) -> tuple[JsonObject, list[Issue]]:
    """The keys of an entry merged with those under its `config:`, and problems of using both."""
    if "config" not in options:
        return options, []
    config = options["config"]
    if not isinstance(config, Mapping):
        return options, [Issue(("config",), f"'config' must be a mapping, found {type(config).__name__}")]
    direct = {name: value for name, value in options.items() if name != "config"}
    clashes = [
        Issue(("config", name), f"'{name}' is set both here and outside 'config'") for name in config if name in direct
    ]
    return {**config, **direct}, clashes


def at_their_place(issues: Iterator[Issue], options: JsonObject) -> Iterator[Issue]:
    """Issues of merged options, with paths into `config:` for options that are set there."""
    for issue in issues:
        inside = issue.path and issue.path[0] not in options
        yield replace(issue, path=("config", *issue.path)) if inside else issue


def label_of(options: Mapping[str, Json], limit: int = 60) -> str:
    """The options in a few words; part of an entry's default name."""
    if not options:
        return ""
    value_only = options.keys() == {"value"}
    shown = (
        _words(options["value"])
        if value_only
        else ", ".join(f"{key}={_words(value)}" for key, value in options.items())
    )
    return shorten(shown, limit)


def _words(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
