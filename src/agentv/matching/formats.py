"""Check all formats that JSON Schema 2020-12 defines (section 7.3), without network access."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from ipaddress import IPv4Address, IPv6Address

from agentv.matching.patterns import JAVASCRIPT, PatternError, compiled
from agentv.model.values.values import lazy_pattern

_LONGEST_HOST = 253
_LEAP_SECOND = 60
_MINUTES_A_DAY = 24 * 60
_LONGEST_REGEX = 5_000
"""Maximum length of a regular expression in an answer; compiling a longer one takes too long."""

_DATE = lazy_pattern(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = lazy_pattern(
    r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)(?:\.\d+)?"
    r"(?:[zZ]|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):(?P<minutes>[0-5]\d))",
    re.ASCII,
)
_CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION = lazy_pattern(rf"P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{_CLOCK})?|{_CLOCK})", re.ASCII)
_LABEL = r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
_HOST = lazy_pattern(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_LOCAL = lazy_pattern(rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})", re.ASCII)
_LOCAL_OF_ANY_SCRIPT = lazy_pattern(r'[^\s@".,;:<>()\[\]\\]+(?:\.[^\s@".,;:<>()\[\]\\]+)*')
_UUID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_JSON_POINTER = lazy_pattern(_POINTER, re.DOTALL)
_RELATIVE_POINTER = lazy_pattern(rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})", re.DOTALL)
_VARIABLE = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?::[1-9]\d{0,3}|\*)?"
_TEMPLATE = lazy_pattern(
    rf"(?:[^\x00-\x20\"'<>\\^`{{|}}%]|%[0-9A-Fa-f]{{2}}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)


def _uri(more: str, *, relative: bool) -> Callable[[str], bool]:
    """Return a check for URIs (RFC 3986), or for IRIs (RFC 3987) if `more` has letters beyond ASCII."""
    letters = rf"[A-Za-z0-9._~!$&'()*+,;={more}-]|%[0-9A-Fa-f]{{2}}"
    part = rf"(?:{letters}|[:@])"
    authority = (
        rf"(?:(?:{letters}|:)*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|\[v[0-9A-Fa-f]+\.[^\[\]\s]+\]|(?:{letters})*)(?::\d*)?"
    )
    path = rf"(?://{authority}(?:/{part}*)*|/(?:{part}+(?:/{part}*)*)?|{part}+(?:/{part}*)*|)"
    # in a relative reference, a colon in the first part would make it a scheme
    loose = rf"(?://{authority}(?:/{part}*)*|/(?:{part}+(?:/{part}*)*)?|(?:{letters}|@)+(?:/{part}*)*|)"
    ends = rf"(?:\?(?:{part}|[/?])*)?(?:\#(?:{part}|[/?])*)?"
    whole = lazy_pattern(rf"[A-Za-z][A-Za-z0-9+.-]*:{path}{ends}")
    reference = lazy_pattern(rf"{loose}{ends}")

    def check(text: str) -> bool:
        found = whole.fullmatch(text) or (reference.fullmatch(text) if relative else None)
        host = found["host"] if found is not None else None
        return found is not None and (not host or not host.startswith("[") or host[1] == "v" or _ipv6(host[1:-1]))

    return check


def _date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _succeeds(date.fromisoformat, text)


def _time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None or int(found["second"]) < _LEAP_SECOND:
        return found is not None
    # a leap second can only be the last second of a day in UTC
    away = int(found["hours"] or 0) * 60 + int(found["minutes"] or 0)
    at = int(found["hour"]) * 60 + int(found["minute"]) - (-away if found["sign"] == "-" else away)
    return at % _MINUTES_A_DAY == _MINUTES_A_DAY - 1


def _date_time(text: str) -> bool:
    return _date(text[:10]) and text[10:11] in ("T", "t") and _time(text[11:])


def _email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    return _LOCAL.fullmatch(local) is not None and (_hostname(host) or _literal(host))


def _idn_email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    named = _LOCAL_OF_ANY_SCRIPT.fullmatch(local) or _LOCAL.fullmatch(local)
    return named is not None and (_idn_hostname(host) or _literal(host))


def _literal(host: str) -> bool:
    """Return whether a host is an IP address in brackets."""
    inside = host[1:-1] if host.startswith("[") and host.endswith("]") else ""
    return _ipv6(inside[5:]) if inside.upper().startswith("IPV6:") else _succeeds(IPv4Address, inside)


def _hostname(text: str) -> bool:
    return len(text) <= _LONGEST_HOST and _HOST.fullmatch(text) is not None


def _idn_hostname(text: str) -> bool:
    import idna

    return bool(text) and _succeeds(idna.encode, text)


def _ipv6(text: str) -> bool:
    return "%" not in text and _succeeds(IPv6Address, text)  # a zone is not part of the address


def _regex(text: str) -> bool:
    if len(text) > _LONGEST_REGEX:
        return False
    with suppress(PatternError):
        compiled(text, JAVASCRIPT)
        return True
    return False


def _succeeds(reads: Callable[[str], object], text: str) -> bool:
    with suppress(ValueError):
        reads(text)
        return True
    return False


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


_MORE = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000efffd"

FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": _whole(_DURATION),
    "email": _email,
    "hostname": _hostname,
    "idn-email": _idn_email,
    "idn-hostname": _idn_hostname,
    "ipv4": lambda text: _succeeds(IPv4Address, text),
    "ipv6": _ipv6,
    "iri": _uri(_MORE, relative=False),
    "iri-reference": _uri(_MORE, relative=True),
    "json-pointer": _whole(_JSON_POINTER),
    "regex": _regex,
    "relative-json-pointer": _whole(_RELATIVE_POINTER),
    "time": _time,
    "uri": _uri("", relative=False),
    "uri-reference": _uri("", relative=True),
    "uri-template": _whole(_TEMPLATE),
    "uuid": _whole(_UUID),
}
"""Name of a format → check of a text."""
