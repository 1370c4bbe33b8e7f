"""Reads tasks of tau-bench and tau2-bench: a simulated user, and the calls that bring the database to its goal state.

tau-bench has its tasks in Python, `Task(instruction=…, actions=[Action(…)], outputs=[…])`, which is parsed and not run;
tau2-bench has them in JSON. An agent passes if the database ends in the same state as after these calls, whichever
calls it made, and if it gave the user the required information (docs/evaluation.md of tau2-bench).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentv.authoring.convert.records import Findings, records
from agentv.authoring.fields.python_source import parsed
from agentv.authoring.source.nodes import NOWHERE, MapNode, Node, is_empty, node_of, plain, span_of
from agentv.extensions.datasets.samples import DatasetSample, Entry, messages_of, text_of
from agentv.model.values.values import Json, Span

_READ_ONLY = ("get_", "find_", "list_", "search_", "calculate", "think", "transfer_to_human")
"""Prefixes of the names of tools that do not change the database."""

_BASES = ("DB", "COMMUNICATE", "ACTION", "NL_ASSERTION", "ENV_ASSERTION")
"""Values of `reward_basis`: what a task may be graded by."""

_POLICIES = ("policy.md", "wiki.md")
"""Files beside the tasks of tau2-bench and of tau-bench with the policy that the agent must follow."""

_CLASSES = ("Task", "Action")


def head_of_tasks(source: Path, tools: Path | None, path: Path) -> dict[str, Node]:
    """The keys of the suite: its threshold, the policy beside the tasks as a system message, tools with `db.json`.

    Args:
        source: path of the tasks.
        tools: the module with their tools, if there is one.
        path: path of the suite.
    """

    def named(file: Path) -> str:
        return f"./{os.path.relpath(file, path.absolute().parent)}"

    head: dict[str, Node] = {"threshold": node_of(1, NOWHERE)}
    for policy in (one for name in _POLICIES if (one := source.with_name(name)).is_file()):
        message: Json = {"role": "system", "content": [{"type": "file", "value": named(policy)}]}
        head["input"] = node_of([message], NOWHERE)
    if tools is not None:
        database = source.with_name("db.json")
        state: dict[str, Json] = {"state": named(database)} if database.is_file() else {}
        head["tools"] = node_of({tools.stem: {"tools": named(tools), **state}}, NOWHERE)
    return head


def tasks(path: str, findings: Findings) -> Iterator[MapNode]:
    """The tasks of a file, in order. A task that cannot be read without running Python is reported.

    Raises:
        OSError: the file cannot be read.
    """
    return _tasks_in_python(path, findings) if path.endswith(".py") else records(path, findings)


def _tasks_in_python(path: str, findings: Findings) -> Iterator[MapNode]:
    try:
        tree = parsed(Path(path).read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        findings.error("bad-python-file", Span.start_of(path), f"not valid Python: {error}")
        return
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call) and _class_of(one) == _CLASSES[0])
    for call in sorted(calls, key=lambda one: one.lineno):
        at = Span(path, call.lineno, call.col_offset + 1, call.lineno, call.col_offset + 2)
        try:
            made = node_of(_value(call), at)
        except ValueError:
            findings.error("bad-case", at, "this task is computed, so it can only be read by running the file")
        else:
            assert isinstance(made, MapNode)  # noqa: S101  # `_value` of a task's call is a dictionary
            yield made


def _class_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _value(node: ast.expr | None) -> Any:
    """The value of an expression.

    Raises:
        ValueError: it cannot be computed without running it.
    """
    match node:
        case ast.Call() if _class_of(node) in _CLASSES and not node.args:
            return {str(one.arg): _value(one.value) for one in node.keywords}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(one) for one in items]
        case ast.Dict(keys=keys, values=values):
            return {str(_value(key)): _value(one) for key, one in zip(keys, values, strict=True)}
    return ast.literal_eval(node or ast.Tuple([]))


def read_task(record: MapNode, findings: Findings, server: str) -> DatasetSample | None:
    """Read a task, or return None if it is invalid or has no equivalent, which is reported.

    Args:
        record: a task of either benchmark.
        findings: collects diagnostics.
        server: name of the server whose tools its actions call; empty if the agent brings its own tools.
    """
    items = dict(record.items)
    scenario, criteria = items.pop("user_scenario", None), items.pop("evaluation_criteria", None)
    goal = items.pop("instruction", None)
    user = _user(scenario) if isinstance(scenario, MapNode) else {"goal": text_of(goal) or ""}
    wanted: Mapping[str, Any] = plain(criteria) if isinstance(criteria, MapNode) else {}
    actions = wanted.get("actions") or plain(items.pop("actions", node_of([], record.at))) or []
    outputs = wanted.get("communicate_info") or plain(items.pop("outputs", node_of([], record.at))) or []
    basis = wanted.get("reward_basis") or ("DB", "COMMUNICATE")
    state = items.pop("initial_state", None)
    problems = [("bad-value", one) for one in _malformed(actions, outputs, wanted, basis, user)]
    begin: Mapping[str, Any] = plain(state) if isinstance(state, MapNode) else {}
    if not isinstance(begin.get("message_history") or [], list):
        problems.append(("bad-value", "'message_history' of a task must be a list"))
    if not problems:
        problems = [("no-equivalent", one) for one in _without_equivalent(actions, basis, begin)]
    for code, problem in problems:
        findings.error(code, record, problem)
    if problems:
        return None
    history = state.get("message_history") if isinstance(state, MapNode) else None
    opening = None if history is None or is_empty(history) else messages_of(history, findings)
    called = (one for one in actions if one["name"] != "respond")
    calls = [{"tool": f"{server}.{one['name']}", "args": _arguments(one)} for one in called]
    required = [str(one) for one in outputs] if "COMMUNICATE" in basis else []
    identity, description = text_of(items.pop("id", None)), items.pop("description", None)
    purpose = description.get("purpose") if isinstance(description, MapNode) else description
    at = span_of(record.at)
    return DatasetSample(
        input=opening,
        references=(", ".join(required),) if required else (),
        at=record.at,
        id=identity,
        description=text_of(purpose),
        user=node_of({**user, "output": "answers"}, at),
        checks=tuple(_checks(actions, required, wanted, basis, server)),
        solution=node_of({"calls": calls}, at) if server else None,
        metadata={key: items[key] for key in ("user_id", "annotator") if key in items and not is_empty(items[key])},
    )


def _user(scenario: MapNode) -> dict[str, Any]:
    plain_scenario: Mapping[str, Any] = plain(scenario)
    given, persona = plain_scenario.get("instructions") or "", plain_scenario.get("persona")
    user: dict[str, Any] = {"goal": given} if isinstance(given, str) else {}
    if isinstance(given, Mapping):
        unknown = given.get("unknown_info")
        parts = (given.get("reason_for_call"), given.get("task_instructions"), unknown and f"Unknown to you: {unknown}")
        user = {"goal": "\n".join(str(one) for one in parts if one)}
        if given.get("known_info"):
            user["knows"] = {"about yourself": given["known_info"]}
    return {**user, "persona": persona} if persona else user


def _malformed(
    actions: Any, outputs: Any, wanted: Mapping[str, Any], basis: Any, user: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the errors of a task that does not have the benchmarks' format."""
    if not user.get("goal"):
        yield "this task does not say what its user wants"
    lists = {"actions": actions, "reward_basis": basis, "nl_assertions": wanted.get("nl_assertions") or []}
    lists["communicate_info" if "communicate_info" in wanted else "outputs"] = outputs
    for name, given in lists.items():
        if not isinstance(given, list | tuple):
            yield f"'{name}' of a task must be a list"
    for one in actions if isinstance(actions, list) else ():
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
            yield "an action of a task must be a mapping with 'name'"
        elif not isinstance(_arguments(one), Mapping):
            yield f"the arguments of the action '{one['name']}' must be a mapping"
        elif not isinstance(one.get("compare_args") or [], list):
            yield f"'compare_args' of the action '{one['name']}' must be a list"
    for one in basis if isinstance(basis, list) else ():
        if one not in _BASES:
            yield f"'reward_basis' of a task must be of {', '.join(_BASES)}, found {one!r}"


def _without_equivalent(actions: Sequence[Any], basis: Sequence[str], state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the features of a task that have no equivalent."""
    if "ENV_ASSERTION" in basis:
        yield "'env_assertions' of a task are functions of tau2-bench, which are not converted"
    if any(one.get("requestor") == "user" for one in actions):
        yield "the user of this task calls tools, which a simulated user does not have"
    if state.get("initialization_data") or state.get("initialization_actions"):
        yield "this task begins with a database of its own, which is not converted"
    if any(isinstance(one, Mapping) and one.get("tool_calls") for one in state.get("message_history") or ()):
        yield "tools were called before this task begins, which is not converted"


def _arguments(action: Mapping[str, Any]) -> Any:
    return action.get("arguments", action.get("kwargs", {}))


def _checks(
    actions: Sequence[Any], required: Sequence[str], wanted: Mapping[str, Any], basis: Sequence[str], server: str
) -> Iterator[Entry]:
    """Yield the assertions of a task. Without the tools, calls that change the database are compared instead of it."""
    if "DB" in basis and server:
        yield {"type": "tool-state", "after": "solution", "server": server}
    for one in actions:
        compares = "ACTION" in basis or ("DB" in basis and not server and not one["name"].startswith(_READ_ONLY))
        if compares and one["name"] != "respond":
            compared = one.get("compare_args") or _arguments(one)
            kept = {key: item for key, item in _arguments(one).items() if key in compared}
            match: Json = {"name": one["name"], "args": kept}
            if kept:
                yield {"type": "trajectory:tool-args-match", "value": match}
            else:
                yield {"type": "trajectory:tool-used", "value": one["name"]}
    if required:  # tau-bench looks for numbers in answers without their commas
        transform = "output | replace(',', '')"
        yield {"type": "icontains-all", "name": "says", "value": list(required), "transform": transform}
    if "NL_ASSERTION" in basis and wanted.get("nl_assertions"):
        yield {"type": "llm-rubric", "name": "nl assertions", "value": list(wanted["nl_assertions"])}
