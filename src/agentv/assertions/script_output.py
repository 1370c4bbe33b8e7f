"""What a script's output and exit status say of an answer (SPEC section 8, "Script")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentv.assertions.result import BAD_RESULT, grade_of
from agentv.foreign.processes import Finished
from agentv.model.grade import Grade
from agentv.model.values import Json

FAILED = "script-failed"
_SIGNALS = range(129, 193)
"""Exit statuses with which a shell says that its command was killed: 128 + the signal."""


def read_output(ended: Finished) -> Grade:
    """The grade that a script gives: its JSON object, else its exit status.

    A script that breaks gives no verdict, whatever it printed before: the grade is errored with `script-failed`. So
    is one with `bad-result` whose output begins like a JSON object and is none, or is a JSON value that contradicts
    the exit status.
    """
    printed = ended.stdout.decode(errors="replace").strip()
    said = ended.stderr.decode(errors="replace").strip()
    status = ended.status
    if status < 0 or status in _SIGNALS:
        signal = -status if status < 0 else status - 128
        return Grade.errored(FAILED, _with_last_line(f"script was killed by signal {signal}", said))
    verdict = _find_object(printed)
    if status and (said or verdict is not None):
        after = " after it printed a verdict" if verdict is not None else ""
        return Grade.errored(FAILED, _with_last_line(f"script exited with {status}{after}", said))
    if verdict is not None:
        return grade_of(verdict, "script")
    if printed.startswith("{"):
        return Grade.errored(BAD_RESULT, f"script printed what is no JSON object: {_cut(printed, 200)}")
    if status == 0 and _denies(printed):
        message = f"script printed {printed} and exited with 0; print an object with 'pass', or exit with 1 to fail"
        return Grade.errored(BAD_RESULT, message)
    return Grade.of(status == 0, _cut(printed, 2000) or f"exit {status}")


def _find_object(printed: str) -> Mapping[str, Json] | None:
    """The JSON object that the output ends with; lines before it are what libraries print while they load."""
    for start in _line_starts(printed, "{"):
        found = _parse(printed[start:])
        if isinstance(found, Mapping):
            return found
    return None


def _line_starts(text: str, begin: str, most: int = 100) -> Iterator[int]:
    at = 0 if text.startswith(begin) else text.find("\n" + begin) + 1 or -1
    for _ in range(most):
        if at < 0:
            return
        yield at
        at = text.find("\n" + begin, at) + 1 or -1


def _parse(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _denies(printed: str) -> bool:
    """Whether the output is a JSON value that cannot mean a pass: `false`, `null`, or a number below 1."""
    if len(printed) > 40 or (printed != "null" and _parse(printed) is None):
        return False
    found = _parse(printed)
    return found is None or found is False or (isinstance(found, int | float) and found < 1)


def _with_last_line(message: str, said: str) -> str:
    return f"{message}: {_cut(said.splitlines()[-1], 300)}" if said else message


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
