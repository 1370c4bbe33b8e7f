"""Files of a prompt's directory that nothing reads: mostly a misspelt name."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from agentv.authoring.prompt_library.files import EXAM_FILES, META, PROMPT_FILES
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import Diagnostic
from agentv.model.values.span import Span

EXAMPLES = "examples"
"""The directory of the inputs, each set in a directory of its own."""

_INPUTS = ("inputs.yml", "inputs.yaml")
_OURS = frozenset({*PROMPT_FILES, *EXAM_FILES, META})
_PAPERS = ("readme", "license", "licence", "changelog", "notice", "skill.md", "todo", "notes")
"""What people leave beside a prompt for each other: how such a file's name begins, in small letters."""


def strange_files(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for each file of the prompt that neither agentv nor the exam reads, and for inputs that no case uses.

    Files in directories other than `examples` are ignored: they belong to the author.

    Args:
        directory: of the prompt, absolute.
        read: files that the exam uses, as paths from the directory.
    """
    with os.scandir(directory) as entries:
        names = sorted(one.name for one in entries if one.is_file())
    for name in names:
        if name in _OURS or name in read or name.startswith((".", "_")) or name.lower().startswith(_PAPERS):
            continue
        hint = did_you_mean(name, [*_OURS, *_INPUTS]) or "keep your own files in a separate directory"
        at = _top(os.path.join(directory, name))  # noqa: PTH118  # for thousands of prompts
        yield Diagnostic("unknown-file", f"unused file '{name}'", at, "warning", hint)
    yield from _unused_inputs(directory, read)


def _unused_inputs(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    examples = os.path.join(directory, EXAMPLES)  # noqa: PTH118  # for thousands of prompts
    if not os.path.isdir(examples):  # noqa: PTH112  # as above
        return
    with os.scandir(examples) as entries:
        names = sorted(one.name for one in entries if one.is_dir())
    for name in names:
        for inputs in _INPUTS:
            path = os.path.join(examples, name, inputs)  # noqa: PTH118  # as above
            if f"{EXAMPLES}/{name}/{inputs}" not in read and os.path.isfile(path):  # noqa: PTH113  # as above
                message = f"no case uses the inputs in {EXAMPLES}/{name}"
                yield Diagnostic(
                    "unknown-file", message, _top(path), "warning", "reference it with 'inputs_from' in a case"
                )


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)
