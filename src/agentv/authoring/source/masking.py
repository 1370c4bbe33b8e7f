"""Secrets: masks values by their key or position, and reports secrets that a file contains in plain text."""

from __future__ import annotations

import binascii
import json
import re
import shlex
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, unquote_plus

from agentv.authoring.source.files import is_directory, is_file
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.model.redaction import SHORTEST, is_searched
from agentv.model.values.values import Json, Span, lazy_pattern
from agentv.templating import has_placeholder

MASK = "[redacted]"
_EMPTY = (None, "")

_KEY_NAME = lazy_pattern(
    r".*(?:api|access|private|subscription)[_-]?key|(?:.*[_-])?token|.*(?:secret|authorization|password|passphrase)",
    re.IGNORECASE,
)
_SECRET_HEADER = lazy_pattern(r".*(?:key|token|secret|auth|signature|credential).*|cookie", re.IGNORECASE)
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = lazy_pattern(r"[^a-z0-9]+")
_SECRET_WORD = lazy_pattern(
    r"""
    \w*(?:api|access|secret|private|subscription|auth|encryption|signing|master|admin|account)keys?
    | \w*token | (?:access|refresh|auth|api)tokens
    | \w*secret(?!ar[iy])\w* | \w*credentials? | creds?
    | \w*(?:password|passwd|passphrase|passcode)s? | pwd | \w{2}pass | pat
    | o?auth2? | authorization | authentication | bearer | jwt
    | signature | sig | cookie
    """,
    re.VERBOSE,
)
_SECRET_LAST_WORDS = frozenset({"pass", "key"})
"""Words that denote a secret only at the end of a name: `DB_PASS`, but not `pass_threshold`."""

_HARMLESS_NAME = lazy_pattern(r"git_config_key_\d+|(?:old)?pwd|(?:fail|pass)_to_pass")
"""Names that look like secrets but are not: git settings, the shell's working directory, SWE-bench's lists of tests."""

_BEFORE_KEY = frozenset(
    {
        *("api", "access", "secret", "private", "subscription", "auth", "encryption", "signing", "master", "admin"),
        *("account", "service", "app", "client"),
    }
)
"""Words after which `key` denotes a secret anywhere in a name: `API_KEY_OF_PROD`, but not `PRIMARY_KEY_FIELD`."""

_HARMLESS_LAST_WORDS = frozenset(
    """
    usage limit limits count counts type url uri endpoint host port name budget threshold file files dir directory
    path sock socket home length size format algorithm algo alg mode method scheme provider ttl expiry enabled disabled
    version domain realm issuer audience tenant scope scopes server user username email region project org organization
    group role label field column prefix suffix header param env backend plugin policy level strategy manager vault
    """.split()  # noqa: SIM905  # easier to read than quoted words
)
"""Last words of names that mention a secret but hold none: `token_limit`, `AUTH_URL`, `SSH_AUTH_SOCK`."""

_URL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
_PRIVATE_KEY = "PRIVATE KEY-----"
"""End of the first and last line of a PEM private key, which is a secret in any variable."""

_USERINFO = lazy_pattern(r"(?<=://)([^/@\s:]*:)?([^/@\s]+)@")
"""The user (optional) and the password or token before the host of a URL."""

_QUERY = lazy_pattern(r"(?<=[?&;])([^=&;#?\s\"'<>]+)=([^&;#\s\"'<>]+)")
_SAFE_QUERIES = frozenset(
    """
    api-version version v model deployment format lang language locale region stream limit page sort order mode type
    """.split()  # noqa: SIM905
)
"""Query parameters that are never secrets."""

_FIELD = lazy_pattern(r"(?<![\w-])([\w-]++)[\"']?\s*+[:=]\s*[\"']?([^\s\"',;&{}]+)")
"""`name=value` and `"name": "value"` in a text that is not JSON: a body, a header of several parts."""

_PART = lazy_pattern(r"[\s,;&\"'=]+")


def mask(settings: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The settings with every value masked that is or may be a secret.

    Args:
        settings: plain data.
        within: the key that contains them.
    """
    return {key: _masked(one, key, hide=is_secret(key, within)) for key, one in settings.items()}


def without_keys(settings: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The settings without API keys and passwords in URLs, so that a new key does not change a target's fingerprint.

    Args:
        settings: plain data.
        within: the key that contains them.
    """
    return {
        key: MASK if is_key(key, within) and one not in _EMPTY else _without_keys(one, key)
        for key, one in settings.items()
    }


def _without_keys(value: Any, within: str) -> Any:
    if isinstance(value, Mapping):
        return without_keys(value, within)
    if isinstance(value, list):
        return [_without_keys(one, within) for one in value]
    return _USERINFO.sub(f"{MASK}@", value) if isinstance(value, str) and "://" in value else value


def is_key(key: str, within: str = "") -> bool:
    """Whether a name always denotes a secret."""
    if within == "headers" and _SECRET_HEADER.fullmatch(key):
        return True
    return _KEY_NAME.fullmatch(_CAMEL.sub("_", key)) is not None


def secrets_in(value: Any, *, hide: bool = False, within: str = "") -> Iterator[str]:
    """The secrets in a value, and the parts of each that are secrets too.

    Args:
        value: plain data.
        hide: whether the value is under a secret's key.
        within: the key that contains it.
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from secrets_in(one, hide=hide or is_secret(key, within), within=key)
    elif isinstance(value, list):
        if within in _COMMANDS:
            yield from _in_command([one for one in value if isinstance(one, str)])
        for one in value:
            yield from secrets_in(one, hide=hide, within=within)
    elif hide and value not in _EMPTY:
        yield from _parts(str(value))
    elif isinstance(value, str):
        yield from _in_text(value, within)


_COMMANDS = frozenset({"command", "healthcheck", "args", "script"})


def _in_text(value: str, within: str) -> Iterator[str]:
    """The secrets within a text, such as a URL, a command or a body."""
    if "://" in value:
        yield from _in_urls(value)
    if within in _COMMANDS:
        yield from _in_command(_split(value))
    elif within == "body":
        yield from _in_body(value)


def _in_urls(value: str) -> Iterator[str]:
    for url in _URL.findall(value):
        for user, password in _USERINFO.findall(url):
            yield from (password, unquote(password))
            basic = f"{unquote(user[:-1])}:{unquote(password)}" if user else f"{unquote(password)}:"
            yield b64encode(basic.encode(errors="replace")).decode()  # as HTTP sends it
        for name, text in _QUERY.findall(url):
            if not _is_harmless(name, text):
                yield from (text, unquote_plus(text))


def _is_harmless(name: str, value: str) -> bool:
    """Whether a query parameter is not a secret: a placeholder, a known name, a number, or a plain word."""
    if value.startswith(("{{", "${{")):
        return True
    if is_secret(name):
        return False
    return name.lower() in _SAFE_QUERIES or value.replace(".", "").isdecimal() or not is_searched(unquote_plus(value))


def _in_body(value: str) -> Iterator[str]:
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, (dict, list)):
        yield from secrets_in(read)
    else:
        yield from (part for name, secret in _FIELD.findall(value) if is_secret(name) for part in _parts(secret))


def secrets_in_line(line: str) -> list[str]:
    """The secrets in plain text in a line of a file, longest first."""
    found = [secret for name, secret in _FIELD.findall(line) if is_secret(name, "headers") and is_searched(secret)]
    found += filter(is_searched, _in_urls(line))
    return sorted(found, key=len, reverse=True)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _in_command(words: Iterable[str]) -> Iterator[str]:
    """The secrets among a program's arguments: `--token X`, `--token=X`, `-H 'Cookie: X'`, `NAME=X`, `-pX`."""
    before, words = "", list(words)
    glued = any(_PASSWORD_PROGRAM.fullmatch(word.rpartition("/")[2]) for word in words)
    for word in words:
        name, equals, value = word.partition("=")
        header, colon, rest = word.partition(":")
        if before:
            yield from _parts(word)
        else:
            if equals and is_secret(name.lstrip("-")):
                yield from _parts(value)
            if colon and not rest.startswith("//") and is_secret(header, "headers"):
                yield from _parts(rest.strip())  # may contain `=` too, as base64 does
            option, attached = word[:2], word[2:]  # as in `mysql -pX` and `curl -uNAME:X`
            password = option in ("-p", "-P") and (glued or (is_searched(attached) and _PASSWORD.fullmatch(attached)))
            if attached and (password or (option in _USER_OPTIONS and ":" in attached[1:])):
                yield from _parts(attached)
            if " -" in word:
                yield from _in_command(_split(word))  # a nested command: `sh -c '…'`
        alone = word.startswith("-") and not equals and is_secret(word.lstrip("-"))
        before = word if alone or word in _USER_OPTIONS else ""


_PASSWORD_PROGRAM = lazy_pattern(
    r"(?:mysql|mariadb)[\w-]*|sshpass|7z[ar]?|rar|unrar|zip|unzip|mosquitto_(?:pub|sub)|ldap\w+"
)
"""Programs whose option `-p` or `-P` takes a password."""

_PASSWORD = lazy_pattern(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[^/=:{]+")
"""A likely password after `-p` of other programs: `-pHunter2hunter2`, but not `-p8080:80` or `-profile`."""

_SHORTEST_INSIDE = 4
"""Minimum length of a secret to mask inside a longer text; a shorter one may be part of a word."""

_USER_OPTIONS = frozenset({"-u", "--user", "--proxy-user"})
"""Options of curl and similar programs whose value is `user:password`."""


def _masked(value: Any, within: str, *, hide: bool = False) -> Any:
    if value in _EMPTY:
        return value
    if hide and not isinstance(value, (bool, int, float)):
        return MASK
    if isinstance(value, Mapping):
        return mask(value, within)
    if not isinstance(value, (str, list)):
        return value
    found = sorted({one for one in secrets_in(value, within=within) if one}, key=len, reverse=True)
    return _with_masked(value, found, within)


def _with_masked(value: Any, found: list[str], within: str) -> Any:
    if isinstance(value, list):
        return [_with_masked(one, found, within) for one in value]
    if isinstance(value, Mapping):
        return mask(value, within)
    if isinstance(value, str):
        for one in found:
            value = value.replace(one, MASK) if len(one) >= _SHORTEST_INSIDE or one == value else value
    return value


@lru_cache(maxsize=4096)
def is_secret(key: str, within: str = "") -> bool:
    """Whether a key's value is a secret: `api_key`, `X-Api-Key`, `accessToken`, `DB_PASS`, `sig`, ….

    Under `headers`, so is any name that mentions a key, a token, a secret or authorization: `x-goog-key`, `Cookie`.
    """
    if is_key(key, within):
        return True
    words = [word for word in _WORDS.split(_CAMEL.sub("_", key).lower()) if word]
    if not words or words[-1] in _HARMLESS_LAST_WORDS or _HARMLESS_NAME.fullmatch("_".join(words)):
        return False
    return (
        words[-1] in _SECRET_LAST_WORDS
        or any(one == "key" and before in _BEFORE_KEY for before, one in pairwise(words))
        or any(_SECRET_WORD.fullmatch(word) for word in words)
    )


def unsearched(settings: Mapping[str, Any]) -> Iterator[str]:
    """Names of secrets' keys whose values look like ordinary text, so that texts are not searched for them."""
    for key, one in settings.items():
        if isinstance(one, Mapping):
            yield from unsearched(one)
        elif isinstance(one, str) and one and is_secret(key) and not is_searched(one):
            yield key


def environment_secrets(env: Mapping[str, str]) -> Iterator[str]:
    """The secrets in environment variables, except paths of existing files and directories."""
    for name, value in env.items():
        if not value or (value.startswith("/") and (is_file(value) or is_directory(value))):
            continue
        yield from secrets_in(value, hide=is_secret(name) or _PRIVATE_KEY in value, within=name)


def _parts(value: str) -> Iterator[str]:
    """A secret and its parts: `Bearer sk-…` is secret without its first word too; so is `Token token=…`."""
    if "{{" in value:
        return  # a template: only the rendered value is secret
    yield value
    yield unquote(value)
    if "-----BEGIN" in value:
        yield value.replace("\\n", "\n")
        return
    if value.lstrip().startswith(("{", "[")):
        yield from _in_body(value)
        return
    if "://" in value:
        yield from _in_urls(value)
        return
    words = value.split()
    yield from (word for word in words if len(word) >= SHORTEST)  # shorter words are not secrets
    yield from (part for part in _PART.split(value) if len(part) >= SHORTEST)
    for word in words:
        _, colon, password = word.partition(":")
        if colon:
            yield password
            yield b64encode(word.encode(errors="replace")).decode()
    if words[0:1] and words[0].lower() == "basic":
        yield from _in_basic_credential(words[-1])


def _in_basic_credential(encoded: str) -> Iterator[str]:
    """`user:password`, and the password alone, of an encoded HTTP Basic credential (RFC 7617)."""
    try:
        pair = b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield pair
    yield pair.partition(":")[2]


CODE = "secret-in-file"
"""Code of diagnostics that are shown without their source line, because it contains the secret."""

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
"""Provider → pattern of its keys, from the provider's documentation."""

_KEY = lazy_pattern(
    "|".join(rf"(?P<k{number}>(?:(?<![\w-])|(?<=[0-9]m)){pattern})" for number, pattern in enumerate(_KEYS.values()))
)
"""Any of these keys, at the start of a word or after an ANSI color sequence, which ends with `m`."""

_KEY_START = lazy_pattern("[sAghxr-](?:k-|KIA|SIA|h[pousr]_|ithub_pat_|Iza|f_|ox[abprs]-|k_live_|----BEGIN )")
"""The first characters of each of these keys."""

_OWNERS = tuple(_KEYS)


def _keys_in(text: str) -> Iterator[re.Match[str]]:
    done = 0
    for begun in _KEY_START.finditer(text):  # much faster than trying the whole pattern at each character
        found = _KEY.match(text, begun.start()) if begun.start() >= done else None
        if found is not None:
            done = found.end()
            yield found


def check_keys(path: str, data: bytes, report: Report) -> None:
    """Report everything in a file that looks like a key of a well-known service."""
    text = data.decode(errors="replace")
    for found in _keys_in(text):
        owner = _OWNERS[int((found.lastgroup or "k0")[1:])]
        what = "a private key" if owner == _OWNERS[-1] else f"a key of {owner}"
        line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        at = Span(path, line, column, line, column + len(found[0]))
        report.warning(CODE, at, f"{what} is written in plain text here", hint=_HINT)


def mask_keys(value: Json) -> Json:
    """The value with everything masked that looks like a key of a well-known service."""
    if isinstance(value, str):
        return mask_keys_in(value)
    if isinstance(value, Mapping):
        return {key: mask_keys(one) for key, one in value.items()}
    return [mask_keys(one) for one in value] if isinstance(value, Sequence) else value


def mask_keys_in(text: str) -> str:
    """The text with everything masked that looks like a key of a well-known service."""
    parts, done = list[str](), 0
    for found in _keys_in(text):
        parts += (text[done : found.start()], MASK)
        done = found.end()
    return "".join((*parts, text[done:])) if parts else text


def check_settings(items: Mapping[str, Node], report: Report) -> None:
    """Report a target's settings whose key denotes a secret and whose value is plain text, not a placeholder."""
    for key, scalar in _texts_under_secrets(MapNode(dict(items), {}, NOWHERE), "", ""):
        if scalar.at is not NOWHERE and not (report.hints and any(_keys_in(scalar.text))):
            report.warning(CODE, scalar, f"'{key}' is written in plain text here", hint=_HINT)


def _texts_under_secrets(node: Node, secret: str, within: str) -> Iterator[tuple[str, Scalar]]:
    """The texts in a node under a secret's key, each with that key."""
    if isinstance(node, MapNode):
        for key, one in node.items.items():
            hides = is_secret(key, within)
            yield from _texts_under_secrets(one, key if hides else secret, within if hides else key)
    elif isinstance(node, ListNode):
        for one in node.items:
            yield from _texts_under_secrets(one, secret, within)
    elif secret and isinstance(node.value, str) and node.value and not has_placeholder(node.value):
        # a name that only may denote a secret is reported only if the value looks like one
        yield from [(secret, node)] if is_key(secret, within) or is_searched(node.value) else ()
