"""Comparison of suites by meaning, regardless of file and spelling."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct, structs

from agentv.authoring.code.fingerprints import fingerprint
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def meaning(suite: Suite) -> tuple[Any, dict[str, Any]]:
    """Return a suite's head and its cases by id, without positions; two suites with the same meaning are equal."""
    head = structs.replace(
        suite,
        cases=(),
        path="",
        targets=tuple(_placeless(target) for target in suite.targets),
        judge=_placeless(suite.judge),
        default_judge=_placeless(suite.default_judge),
        judges={name: _placeless(judge) for name, judge in suite.judges.items()},
        files={},
        exam=suite.exam and structs.replace(suite.exam, texts={}),
        links={},
        generators=(),
        tally=None,
        span=None,
        variants=_spanless(suite.variants),
        dialect=None,
    )
    return head, {
        case.id if case.prompt_id is None else f"{case.id} ({case.prompt_id})": _placeless_case(case)
        for case in suite.cases
    }


def _placeless_case(case: Case) -> tuple[Any, ...]:
    """Return a case without positions, and its data as JSON, because 1, 1.0 and True are equal in Python.

    Attached files are compared by their resolved paths.
    """
    messages, reference = _pathless(case.input), _pathless(case.expected_output)
    turns = [
        (_pathless(turn.input), turn.criteria, _pathless(turn.expected_output), _fingerprints(turn.assertions))
        for turn in case.turns
    ]
    facts = (messages, reference, case.vars, case.metadata, _fingerprints(case.assertions), turns)
    bare = structs.replace(
        case,
        input=messages,
        expected_output=reference,
        assertions=(),
        turns=(),
        depends_on=tuple(structs.replace(one, span=None) for one in case.depends_on),
        sha256="",
        span=None,
        target=_placeless(case.target),
        judge=_placeless(case.judge),
        workspace=_spanless(case.workspace),
        tools=_spanless(case.tools),
        user=case.user and structs.replace(case.user, model=_placeless(case.user.model)),
    )
    return bare, _encode(facts)


def _fingerprints(entries: Iterable[AssertionEntry]) -> list[Any]:
    return [fingerprint(entry) for entry in entries]


def _pathless(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(
        message
        if isinstance(message.content, str) or not isinstance(message.content, tuple)
        else structs.replace(message, content=tuple(_with_resolved_path(block) for block in message.content))
        for message in messages
    )


def _with_resolved_path(block: Any) -> Any:
    """Return a block with the resolved path of its file as its value, if it has a file."""
    path = block.path if isinstance(block, FileBlock | ImageBlock | DocumentBlock) else None
    return block if path is None else structs.replace(block, value=path)


def _spanless(value: Any) -> Any:
    """Return a workspace, tools or variants without positions."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_spanless, value))
    if not isinstance(value, Struct):
        return value
    found = {name: None if name == "span" else _spanless(one) for name, one in structs.asdict(value).items()}
    return structs.replace(value, **found)


def _placeless(target: TargetSpec | None) -> Any:
    """Return a target without its position and spelling; its settings have the resolved paths."""
    return structs.replace(target, span=None, public={}, fingerprint="") if target is not None else None
