"""Output and exit status of a script, read as a verdict (SPEC section 8, "Script")."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from agentv.assertions.user_code.result import BAD_RESULT, grade_of, settle
from agentv.model.run.grade import Grade, reaches
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, lazy_pattern
from agentv.user_code.excerpts import last_error
from agentv.user_code.processes import OUTPUT_LIMIT, Finished

FAILED = "script-failed"
_SIGNALS = range(129, 193)
"""Exit statuses with which a shell says that its command was killed: 128 + the signal."""


class _UnclearError(Exception):
    """The output is too much to tell which object in it is the verdict."""


def read_output(ended: Finished) -> Grade:
    """The grade that a script gives: its JSON object, else its exit status.

    A script that breaks gives no verdict, whatever it printed before: the grade is errored with `script-failed`. So
    is one with `bad-result` whose output begins like a JSON object but is invalid, has a key twice, or is another JSON
    value: whether `[]` or `42` beside exit 0 means a pass is unknown.
    """
    try:
        return _grade(ended)
    except _UnclearError:
        return Grade.errored(BAD_RESULT, "script printed too much before its verdict; print less")


def read_verdict(ended: Finished, threshold: float) -> Grade:
    """The grade that the command of an aggregator gives: an object with a `score`, or a verdict.

    AgentV's `verdict`, pass or fail, says the same as `pass`; without either the score must reach the threshold. What
    exits with another status than 0 gives no verdict, nor does what prints text or nothing.
    """
    try:
        found, problem = _find_object(ended.stdout.decode(errors="replace").strip())
    except _UnclearError:
        found, problem = None, None
    if ended.status != 0 or problem is not None or found is None or "verdict" not in found:
        grade = read_output(ended)
    else:
        grade = grade_of(_with_pass(found), "aggregator")
    if grade.error is not None:
        return grade
    if found is None or not found.keys() & {"score", "pass", "passed", "verdict"}:
        return Grade.errored(BAD_RESULT, "the aggregator printed no JSON object with a 'score'")
    if found.keys() & {"pass", "passed", "verdict"}:
        return grade
    return replace(grade, passed=reaches(grade.score, threshold))


def _with_pass(found: Mapping[str, Json]) -> dict[str, Json]:
    row = {key: value for key, value in found.items() if key != "verdict"}
    word = found["verdict"]
    verdict: Json = {"pass": True, "fail": False}.get(word, str(word)) if isinstance(word, str) else str(word)
    return {**row, "passed" if "pass" in row else "pass": verdict}


def _grade(ended: Finished) -> Grade:
    printed = ended.stdout.decode(errors="replace").strip()
    stderr_message = last_error(ended.stderr)
    status = ended.status
    if status < 0 or status in _SIGNALS:
        signal = -status if status < 0 else status - 128
        return Grade.errored(FAILED, _with_error(f"script was killed by signal {signal}", stderr_message))
    verdict, problem = _find_object(printed)
    if status and (stderr_message or verdict is not None):
        after = " after it printed a verdict" if verdict is not None else ""
        return Grade.errored(FAILED, _with_error(f"script exited with {status}{after}", stderr_message))
    if verdict is not None or problem is not None:
        return grade_of(verdict, "script") if problem is None else Grade.errored(BAD_RESULT, problem)
    if printed.startswith("{"):
        return Grade.errored(BAD_RESULT, f"script did not print a JSON object: {shorten(printed, 200)}")
    if status == 0 and _is_other_json(printed):
        what = f"script printed {shorten(printed, 60)} and exited with 0, which is not a verdict"
        return Grade.errored(BAD_RESULT, f"{what}; print an object with 'pass', or plain text and exit with 0 or 1")
    return Grade.of(status == 0, shorten(printed, 2000) or f"exit {status}")


_MOST_READ = 2 * OUTPUT_LIMIT
"""Characters that are read in all to find objects in an output, which may begin at any of its lines."""

_BEGIN = lazy_pattern(r"^[ \t]*(?=\{)", re.MULTILINE)
_VERDICT_KEYS = frozenset({"score", "pass", "passed", "verdict", "assertions", "checks", "hits", "misses"})


class _Found(NamedTuple):
    """The object at the end of an output, or why it is not a verdict."""

    object: Mapping[str, Json] | None
    problem: str | None = None


def _find_object(printed: str) -> _Found:
    """The JSON object that an output ends with. Lines before it are what libraries print while they load.

    Raises:
        _UnclearError: it could be among what is not read.
    """
    objects = [*_objects(printed)]
    verdicts = [_said(found) for found, _, _ in objects if found.keys() & _VERDICT_KEYS]
    last, duplicate, end = objects[-1] if objects else (None, None, 0)
    if last is None or printed[end:].strip():
        late = "script printed text after its verdict; print the verdict last"
        return _Found(None, late if verdicts else None)
    if any(one != verdicts[0] for one in verdicts):
        return _Found(last, f"script printed {len(verdicts)} verdicts that disagree; print one")
    return _Found(last, duplicate and f"script printed an object with the duplicate key {duplicate!r:.80}")


def _objects(printed: str) -> Iterator[tuple[Mapping[str, Json], str | None, int]]:
    """The JSON objects that begin a line or follow another one, each with a duplicate key in it if any, and its end."""
    left, begin = _MOST_READ, _BEGIN.search(printed)
    while begin is not None:
        twice: list[str] = []
        try:
            found, end = json.JSONDecoder(object_pairs_hook=partial(_as_object, twice)).raw_decode(printed, begin.end())
        except json.JSONDecodeError as error:
            left -= error.pos - begin.start() + 1
            begin = _BEGIN.search(printed, begin.end() + 1)
        except RecursionError:
            left -= len(printed) - begin.start()
            begin = _BEGIN.search(printed, begin.end() + 1)
        else:
            yield found, twice[0] if twice else None, end
            begin = _NEXT.match(printed, end) or _BEGIN.search(printed, end)
        if left < 0:
            raise _UnclearError


_NEXT = lazy_pattern(r"[ \t]*(?=\{)")


def _as_object(twice: list[str], pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """The object of these pairs. Keys that stand twice are put into the list."""
    row = dict(pairs)
    if len(row) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice.extend(name for name in row if counts[name] > 1)
    return row


def _said(found: Mapping[str, Json]) -> object:
    """What a verdict comes to: equal for two that agree."""
    settled = settle(_with_pass(found) if "verdict" in found else found)
    return settled.message if isinstance(settled, Failure) else (settled.passed, settled.score)


def _is_other_json(printed: str) -> bool:
    """Whether the output is a JSON value that is neither an object nor `true`."""
    if printed == "null":
        return True
    try:
        found = json.loads(printed)
    except (ValueError, RecursionError):
        return False
    return found is not None and found is not True


def _with_error(message: str, stderr_message: str) -> str:
    return f"{message}: {stderr_message}" if stderr_message else message
