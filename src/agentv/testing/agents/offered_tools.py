"""The tools that a request offers to the model, in any of the protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentv.model.values.values import EMPTY, Json, JsonObject, objects_in

_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call.

    Attributes:
        name: as the request names it.
        namespace: that it stands in (OpenAI's responses); empty: none.
        custom: its input is text rather than an object (OpenAI's custom tools).
        search: it finds further tools, and then the request offers them (Codex).
        schema: JSON Schema of its arguments.
    """

    name: str
    namespace: str = ""
    custom: bool = False
    search: bool = False
    description: str = ""
    schema: JsonObject = field(default=EMPTY)

    @property
    def full_name(self) -> str:
        """With the namespace before it: `NAMESPACE.NAME`."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def arguments(self) -> Mapping[str, Json]:
        """The schema of each argument."""
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else EMPTY

    @property
    def required(self) -> Sequence[str]:
        """The arguments that a call must have."""
        found = self.schema.get("required")
        return [str(one) for one in found] if isinstance(found, Sequence) and not isinstance(found, str) else []


def offered_tools(body: JsonObject) -> tuple[OfferedTool, ...]:
    """The tools of a request that the program itself runs; those that the provider runs have no name."""
    found = [*_tools(body.get("tools"), "")]
    for item in objects_in(body.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            found += _tools(item.get("tools"), "")
    return tuple(found)


def _tools(value: Json, namespace: str) -> Iterator[OfferedTool]:
    for tool in objects_in(value):
        kind, name = tool.get("type"), tool.get("name")
        if kind == "tool_search" and tool.get("execution") == "client":
            yield OfferedTool("tool_search", search=True)
            continue
        if kind == "namespace" and isinstance(name, str):
            yield from _tools(tool.get("tools"), f"{namespace}.{name}" if namespace else name)
            continue
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        if declared is not None:
            yield from _tools(declared, namespace)
            continue
        inner = tool.get("function", tool.get("custom"))
        said = inner if isinstance(inner, Mapping) else tool
        if isinstance(named := said.get("name"), str):
            schema = next((said[key] for key in _SCHEMAS if isinstance(said.get(key), Mapping)), EMPTY)
            yield OfferedTool(
                named,
                namespace,
                custom=kind == "custom" and "input_schema" not in tool,
                description=str(said.get("description", "")),
                schema=schema if isinstance(schema, Mapping) else EMPTY,
            )
