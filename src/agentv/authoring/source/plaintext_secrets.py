"""Secrets that are written into a file, where everybody who has the repository can read them (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentv.authoring.source.masking import MASK, is_key, is_secret
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.model.secrets.secret_forms import is_searched
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.span import Span
from agentv.model.values.values import Json
from agentv.templating import has_placeholder

CODE = "secret-in-file"
"""Diagnostics of this code are shown without their line of source: it holds the secret."""

_HINT = "write {{ env.NAME }}, and set NAME in the environment or in a .env file that git ignores"

_KEYS: Mapping[str, str] = {
    "Anthropic": r"sk-ant-[\w-]{20,}",
    "OpenAI": r"sk-(?!ant-)[\w-]{20,}",
    "AWS": r"(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub": r"(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})",
    "Google": r"AIza[\w-]{35}",
    "Hugging Face": r"hf_[A-Za-z0-9]{30}",
    "Slack": r"xox[abprs]-[\w-]{10,}",
    "Stripe": r"[rs]k_live_\w{16,}",
    "nobody else": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
}
"""Whose key it is → what it looks like, by each provider's own documentation."""

_BEGINNINGS = (b"sk-", b"AKIA", b"ASIA", b"gh", b"AIza", b"hf_", b"xox", b"k_live_", b"PRIVATE KEY-----")
_KEY = lazy_pattern(
    "|".join(rf"(?P<k{number}>(?<![\w-]){pattern})" for number, pattern in enumerate(_KEYS.values())).encode()
)
_OWNERS = tuple(_KEYS)


def check_keys(path: str, data: bytes, report: Report) -> None:
    """Report whatever looks like the key of a well-known service, at its place in a file."""
    if not any(beginning in data for beginning in _BEGINNINGS):
        return
    for found in _KEY.finditer(data):
        owner = _OWNERS[int((found.lastgroup or "k0")[1:])]
        what = "a private key" if owner == _OWNERS[-1] else f"a key of {owner}"
        report.warning(
            CODE, _span(path, data, found.start(), found.end()), f"{what} is written in plain text here", hint=_HINT
        )


_KEY_IN_TEXT = lazy_pattern("|".join(rf"(?:(?<![\w-])|(?<=[0-9]m)){pattern}" for pattern in _KEYS.values()))
"""As `_KEY`; also after an escape sequence of a colour, which ends with `m`."""

_BEGINNING_IN_TEXT = lazy_pattern("[sAghxr-](?:k-|KIA|SIA|h[pousr]_|ithub_pat_|Iza|f_|ox[abprs]-|k_live_|----BEGIN )")
"""How each of them begins."""


def mask_keys(value: Json) -> Json:
    """The value with all its texts without whatever looks like the key of a well-known service."""
    if isinstance(value, str):
        return mask_keys_in(value)
    if isinstance(value, Mapping):
        return {key: mask_keys(one) for key, one in value.items()}
    return [mask_keys(one) for one in value] if isinstance(value, Sequence) else value


def mask_keys_in(text: str) -> str:
    """The text without whatever looks like the key of a well-known service."""
    parts, done = list[str](), 0
    for begun in _BEGINNING_IN_TEXT.finditer(text):  # far faster than the whole pattern at each letter
        found = _KEY_IN_TEXT.match(text, begun.start()) if begun.start() >= done else None
        if found is not None:
            parts += (text[done : found.start()], MASK)
            done = found.end()
    return "".join((*parts, text[done:])) if parts else text


def check_settings(items: Mapping[str, Node], report: Report) -> None:
    """Report the settings of a target whose key says that they are secret, and that are no placeholder."""
    for key, scalar in _literals(items, ""):
        if scalar.at is not NOWHERE and not (report.hints and _KEY.search(scalar.text.encode())):
            report.warning(CODE, scalar, f"'{key}' is written in plain text here", hint=_HINT)


def _literals(items: Mapping[str, Node], secret: str, within: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, node in items.items():
        yield from _inside(node, key if is_secret(key, within) else secret, within if is_secret(key, within) else key)


def _inside(node: Node, secret: str, within: str) -> Iterator[tuple[str, Scalar]]:
    """The texts of a node that stand under a secret's key, with that key."""
    if isinstance(node, MapNode):
        yield from _literals(node.items, secret, within)
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _inside(item, secret, within)
    elif secret and isinstance(node.value, str) and node.value and not has_placeholder(node.value):
        # under a name that may mean something else, only what looks like a key is worth a word
        yield from [(secret, node)] if is_key(secret, within) or is_searched(node.value) else ()


def _span(path: str, data: bytes, start: int, end: int) -> Span:
    line = data.count(b"\n", 0, start) + 1
    column = len(data[data.rfind(b"\n", 0, start) + 1 : start].decode("utf-8", "replace")) + 1
    return Span(path, line, column, line, column + (end - start))
