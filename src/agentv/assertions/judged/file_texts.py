"""Text of the files in an answer, which a judge reads instead of their names.

A target may answer with files: blocks `{"type": "file", "media_type": …, "path": …}`, as AgentV's do. Text files are
read; others need a preprocessor. If a file cannot be read, the grade is errored: its name is not an answer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from agentv.model.run.context import AssertionContext
from agentv.model.values.message import DocumentBlock, Message
from agentv.model.values.response import Failure
from agentv.registry.fields import Preprocessor, media_type_of
from agentv.user_code.excerpts import last_error
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program

PREPROCESSOR_FAILED = "preprocessor-failed"

LONGEST = 10_000_000
"""Maximum size of a file or of a preprocessor's output, in bytes."""


async def with_file_texts(
    context: AssertionContext, preprocessors: Sequence[Preprocessor]
) -> AssertionContext | Failure:
    """Return the context with the text of the files in the answer, or a Failure if one of them has none.

    Args:
        context: returned unchanged if the answer has no files or was replaced by a `transform`.
        preprocessors: the first one for a media type is used.
    """
    message = next((one for one in reversed(context.messages) if one.role == "assistant"), None)
    blocks = message.content if message is not None and isinstance(message.content, tuple) else ()
    if context.answered is not None or not any(isinstance(block, DocumentBlock) for block in blocks):
        return context
    parts: list[str] = []
    for block in blocks:
        if not isinstance(block, DocumentBlock):
            parts.append(Message("assistant", (block,)).text)
            continue
        text = await _text_of(block, preprocessors, context)
        if isinstance(text, Failure):
            return text
        parts.append(text)
    return replace(context, output="\n".join(parts))


async def _text_of(
    block: DocumentBlock, preprocessors: Sequence[Preprocessor], context: AssertionContext
) -> str | Failure:
    media_type = media_type_of(block.media_type or block.path.rpartition(".")[2])
    preprocessor = next((one for one in preprocessors if media_type_of(one.type) == media_type), None)
    path = _path_of(block.path, preprocessor, context)
    if path is None:
        return Failure(
            PREPROCESSOR_FAILED, f"the answer names the file {block.path!r}, which is hidden, or outside the project"
        )
    text = await (_printed(preprocessor, path, block, context) if preprocessor else asyncio.to_thread(_read, path))
    if isinstance(text, Failure):
        return Failure(text.code, f"the file {block.path!r} of the answer: {text.message}")
    if not text.strip():
        return Failure(PREPROCESSOR_FAILED, f"the file {block.path!r} of the answer has no text")
    return f"[[ file: {block.value} ]]\n{text}"


def _path_of(written: str, preprocessor: Preprocessor | None, context: AssertionContext) -> str | None:
    """Return the path of a file that an answer names, or None if it is hidden or outside of the project.

    The name comes from the answer, which must not get the grader to read other files.
    """
    homes = [context.workspace_path, preprocessor.command.cwd if preprocessor is not None else None, os.getcwd()]  # noqa: PTH109  # paths are text here
    roots = [os.path.realpath(home) for home in homes if home]
    for root in roots:
        path = os.path.realpath(os.path.join(root, written.removeprefix("file://")))  # noqa: PTH118
        inside = any(_is_visible(one, path) for one in roots)
        if inside and (os.path.isfile(path) or root is roots[-1]):  # noqa: PTH113
            return path
    return None


def _is_visible(root: str, path: str) -> bool:
    """Return whether a path is inside a directory and not hidden there, as `.env` would be."""
    inside = path.startswith(root.rstrip(os.sep) + os.sep)
    return inside and not any(part.startswith(".") for part in Path(os.path.relpath(path, root)).parts)


def _read(path: str) -> str | Failure:
    """Return the text of a file, or why it has none."""
    try:
        if not os.path.isfile(path):  # noqa: PTH113
            return Failure(PREPROCESSOR_FAILED, "it does not exist")
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(LONGEST + 1)
        text = data.decode()
    except OSError as error:
        return Failure(PREPROCESSOR_FAILED, f"it cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return Failure(PREPROCESSOR_FAILED, "it is not text; add a preprocessor for its type")
    if len(data) > LONGEST or "\0" in text:
        return Failure(
            PREPROCESSOR_FAILED,
            "it is too long" if len(data) > LONGEST else "it is not text; add a preprocessor for it",
        )
    return text.replace("\r\n", "\n")


async def _printed(
    preprocessor: Preprocessor, path: str, block: DocumentBlock, context: AssertionContext
) -> str | Failure:
    """Return the text that a preprocessor prints for a file, or why none exists."""
    command = preprocessor.command
    stdin = json.dumps({"path": path, "original_path": block.path, "media_type": block.media_type}).encode()
    env = with_sdk(context.env)
    ended = await run_program(command, stdin=stdin, env=env, timeout_s=preprocessor.timeout_s, limit=LONGEST)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        message = last_error(ended.stderr)
        return Failure(PREPROCESSOR_FAILED, f"its preprocessor exited with {ended.status}{message and f': {message}'}")
    try:
        return ended.stdout.decode().strip()
    except UnicodeDecodeError:
        return Failure(PREPROCESSOR_FAILED, "its preprocessor printed what is not UTF-8 text")
