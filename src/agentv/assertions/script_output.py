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
    is one with `bad-result` whose output begins like a JSON object and is none, says one key twice, or is another JSON
    value: nobody can tell whether `[]` or `42` beside exit 0 means a pass.
    """
    printed = ended.stdout.decode(errors="replace").strip()
    said = ended.stderr.decode(errors="replace").strip()
    status = ended.status
    if status < 0 or status in _SIGNALS:
        signal = -status if status < 0 else status - 128
        return Grade.errored(FAILED, _with_last_line(f"script was killed by signal {signal}", said))
    verdict, twice = _find_object(printed)
    if status and (said or verdict is not None):
        after = " after it printed a verdict" if verdict is not None else ""
        return Grade.errored(FAILED, _with_last_line(f"script exited with {status}{after}", said))
    if verdict is not None:
        said_twice = f"script printed an object in which the key {twice!r:.80} stands twice"
        return grade_of(verdict, "script") if twice is None else Grade.errored(BAD_RESULT, said_twice)
    if printed.startswith("{"):
        return Grade.errored(BAD_RESULT, f"script printed what is no JSON object: {_cut(printed, 200)}")
    if status == 0 and _is_other_json(printed):
        what = f"script printed {_cut(printed, 60)} and exited with 0, which is no verdict"
        return Grade.errored(BAD_RESULT, f"{what}; print an object with 'pass', or plain text and exit with 0 or 1")
    return Grade.of(status == 0, _cut(printed, 2000) or f"exit {status}")


def _find_object(printed: str) -> tuple[Mapping[str, Json] | None, str | None]:
    """The JSON object that the output ends with; lines before it are what libraries print while they load.

    With it comes a key that stands twice in it, or in an object inside it, if there is one.
    """
    for start in _line_starts(printed, "{"):
        twice: list[str] = []
        found = _parse(printed[start:], twice)
        if isinstance(found, Mapping):
            return found, twice[0] if twice else None
    return None, None


def _line_starts(text: str, begin: str, most: int = 100) -> Iterator[int]:
    at = 0 if text.startswith(begin) else text.find("\n" + begin) + 1 or -1
    for _ in range(most):
        if at < 0:
            return
        yield at
        at = text.find("\n" + begin, at) + 1 or -1


def _parse(text: str, twice: list[str]) -> Json:
    """The JSON value that a text is, else None. Keys that stand twice in an object are put into the list."""

    def as_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        row = dict(pairs)
        if len(row) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in row if names.count(name) > 1)
        return row

    try:
        found: Json = json.loads(text, object_pairs_hook=as_object)
    except (ValueError, RecursionError):
        return None
    return found


def _is_other_json(printed: str) -> bool:
    """Whether the output is a JSON value that is neither an object nor `true`."""
    if printed == "null":
        return True
    found = _parse(printed, [])
    return found is not None and found is not True


def _with_last_line(message: str, said: str) -> str:
    return f"{message}: {_cut(said.splitlines()[-1], 300)}" if said else message


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
