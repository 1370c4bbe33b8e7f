"""Which labels of one side the other one lacks: groups are compared by a hash first, so that few ids are sent."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct

LabelGroup = tuple[str, str, str]
"""A suite, a person, and the day of labels: such a group is soon complete, and then stays as it is."""

_DAY = len("2026-11-21")


class GroupHash(Struct, frozen=True):
    """The labels of a group on one side. `sha256`: of their ids; the order of the labels does not matter."""

    suite: str
    person: str
    day: str
    sha256: str


def label_id(line: bytes) -> str:
    """The id of a label: the SHA-256 of its line, as `label_line` writes it."""
    return sha256(line).hexdigest()


def group_of(suite: str, person: str, time: str) -> LabelGroup:
    """The group of a label."""
    return suite, person, time[:_DAY]


def group_hash(ids: Iterable[str]) -> str:
    """The hash of a group."""
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()
