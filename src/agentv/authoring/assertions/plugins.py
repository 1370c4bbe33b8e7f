"""Options of a plugin's assertion type, made inside the guard: what its code raises is said of the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentv.authoring.fields.decode import INVALID, OptionsSchema
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.source.nodes import MapNode, Node
from agentv.authoring.targets.target import PLUGINS_COMMAND
from agentv.registry.plugins import PluginCode
from agentv.user_code.functions.guard import ForeignError, foreign_code


def made_by_plugin(
    shape: OptionsSchema,
    plugin: PluginCode,
    options: Mapping[str, Node],
    item: MapNode,
    reading: Reading,
    others: ExtraKeys,
) -> Any:
    """The options of an entry; INVALID where they are wrong, or where the plugin's own code goes wrong over them."""
    try:
        with foreign_code("bad-plugin", plugin.title):
            made = shape.decode(options, item, reading, plugin.title, others=others)
            label = "" if made is INVALID else made.label()
    except ForeignError as error:
        reading.report.error(error.failure.code, item, error.failure.message, notes=(PLUGINS_COMMAND,))
        return INVALID
    if not isinstance(label, str):
        message = f"{plugin.title} is broken: label() must return text, returned {type(label).__name__}"
        reading.report.error("bad-plugin", item, message, notes=(PLUGINS_COMMAND,))
        return INVALID
    return made
