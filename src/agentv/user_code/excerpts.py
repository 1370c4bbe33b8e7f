"""Excerpts of untrusted text for messages: short, without terminal control characters."""

from __future__ import annotations

import re
import signal

from agentv.model.values.formatting import shorten

LONGEST = 500
"""Most characters of an excerpt."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~] | \x1b\][^\x07\x1b]*(?:\x07|\x1b\\) | \x1b[@-Z\\^_]", re.VERBOSE)


def head(printed: bytes, longest: int = LONGEST) -> str:
    """Return the beginning of the output."""
    text = _printable(printed[: longest * 8])
    return text if len(text) <= longest and len(printed) <= longest * 8 else f"{text[:longest].rstrip()} …"


def tail(printed: bytes, longest: int = LONGEST) -> str:
    """Return the end of the output."""
    text = _printable(printed[-longest * 8 :])
    return text if len(text) <= longest and len(printed) <= longest * 8 else f"… {text[-longest:].lstrip()}"


def exit_text(status: int) -> str:
    """Describe an exit status: `exit 3`, `killed by SIGSEGV`."""
    if status >= 0:
        return f"exit {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


_RUNTIME = re.compile(r"Node\.js v\d|Bun v\d")
"""The last line that node and bun print for an uncaught error."""

_ERROR = re.compile(r"(?:Uncaught )?(?:error|[A-Za-z_.$]*(?:Error|Exception))\b(?: \[\w+\])?(?::|$)")
_FRAME = re.compile(r"\s+at (?:.*\()?(?:file://)?(/[^()]*|[^()/]*\.[cm]?[jt]sx?):(\d+):\d+\)?$")
_PLACE = re.compile(r"(?:file://)?(/.*):(\d+)$")
_AGENTV_PATH = "/agentv/user_code/javascript/"
_MOST_LINES = 5


def last_error(printed: bytes, longest: int = 300) -> str:
    """Return the error message that a program printed last, on one line; "" if it printed nothing.

    For most programs that is the last line. Node and bun print a stack and their version after the error. For them it
    is the error's own lines and the place where it was raised.
    """
    lines = _printable(printed).splitlines()
    message = _javascript_error(lines) or next((line.strip() for line in reversed(lines) if line.strip()), "")
    return shorten(message, longest)


def is_javascript_error(printed: bytes) -> bool:
    """Whether the output is that of node or bun for an uncaught error."""
    return bool(_javascript_error(_printable(printed).splitlines()))


def _javascript_error(lines: list[str]) -> str:
    errors = [place for place, line in enumerate(lines) if _ERROR.match(line)]
    framed = any(line.lstrip().startswith("at ") for line in lines)
    if not errors or not (framed or any(map(_RUNTIME.match, lines))):
        return ""
    first = errors[-1]
    own = [lines[first]]
    for line in lines[first + 1 : first + _MOST_LINES]:
        if not line.strip() or line.lstrip().startswith("at ") or _RUNTIME.match(line):
            break
        own.append(line.strip())
    frames = (found for line in lines[first:] if (found := _FRAME.match(line)))
    head = next((found for line in lines[:first] if (found := _PLACE.match(line))), None)
    at = next((one for one in frames if _AGENTV_PATH not in one[1]), head)
    return " ".join(own) + (f" ({at[1].rpartition('/')[2]}:{at[2]})" if at is not None else "")


def _printable(printed: bytes) -> str:
    """Decode text and remove colours and control characters, but not line breaks."""
    text = _ESCAPES.sub("", printed.decode(errors="replace")).replace("\r\n", "\n")
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text).strip()
