"""The cases of one suite put together, in their order, wherever they come from, and the links between them.

Links are those of `depends_on` and `conversation_id` (SPEC section 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias

from msgspec import Struct, field

from agentv.authoring.cases.context import CaseNotes
from agentv.authoring.cases.streamed import SHOWN, StreamedCases
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, Node, Scalar, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.model.suite.conversation import Dependency, Link
from agentv.model.suite.suite import Case, Cases
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.values import Span
from agentv.templating import has_placeholder


class ManyCases:
    """Cases out of several sources, in their order."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


class CaseCollector:
    """Collects the cases of one suite, and checks them against each other.

    Args:
        notes: say which cases are wrong.
        report: of the suite.

    Attributes:
        tally: how many cases have which `repeat` of their own, and whether they have a target of their own.
        asks_judge: some case asks the judge, whose number of trials the tally does not know.
    """

    def __init__(self, notes: CaseNotes, report: Report) -> None:
        self._notes = notes
        self._report = report
        self._parts: list[Part] = []
        self._duplicates = DuplicateIds(self._parts, report)
        self._links = Links()
        self.asks_judge = False
        self.tally: Counter[tuple[int | None, bool]] = Counter()

    @property
    def cases(self) -> Cases:
        """The collected cases."""
        return self._parts[0] if len(self._parts) == 1 else ManyCases(self._parts)

    def add(self, cases: tuple[Case, ...], where: str = "") -> None:
        """Add the cases of one entry; `where`: position in words, if their span does not show it."""
        if not cases:
            return
        self._register(cases, where)
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].extend(cases)  # type: ignore[union-attr]  # a list, as the line above sees to

    def add_stream(self, cases: StreamedCases[Any], report: Report) -> None:
        """All cases of a file, which is checked now."""
        self._parts.append(cases)
        count, invalid = 0, len(self._notes.invalid)
        for found in cases.check(report):
            self._register(found)
            count += len(found)
        self._links.lost |= count + len(self._notes.invalid) - invalid < len(cases)  # a line that is no object

    def ask(self, cases: Sequence[Case]) -> None:
        """Cases that ask the judge in force, before those of `tests:`."""
        for case in cases:
            self.asks_judge = True
            self.add((case,))

    def end(self, top: Span) -> dict[str, Link]:
        """Finish: report duplicate ids and links to unknown cases; returns the links by case.

        Args:
            top: of the eval file.
        """
        self._duplicates.end(self._notes.invalid, top)
        if self._links.empty:
            self._duplicates.forget()
            return {}
        self._links.unread, self._links.lost = self._notes.invalid, self._links.lost or self._notes.lost
        return self._links.checked(self._duplicates.__contains__, lambda: (one.id for one in self.cases), self._report)

    def _register(self, cases: tuple[Case, ...], where: str = "") -> None:
        """Count the cases of one entry, and note an id that another entry has. Its prompts share one id."""
        first = cases[0]
        if first.depends_on or first.conversation_id is not None:
            for case in {case.id: case for case in cases}.values():
                if case.id not in self._duplicates:
                    self._links.note(case, self._report)
        is_duplicate = self._duplicates.seen(first.id.removesuffix(first.id_suffix), first, where)
        before = None if first.id_suffix else first.id
        for case in cases:
            self.tally[case.repeat, case.target is not None] += 1
            if case.id != before and not is_duplicate:
                self._duplicates.seen(case.id, case, where)
                before = case.id


Part: TypeAlias = "list[Case] | StreamedCases[Any]"
"""Cases that stand in a list, or in one file."""


class DuplicateIds:
    """Finds duplicate ids, which are stored as hashes: a million of them take 24 MB.

    A hit means that the id was probably seen, so the source must be read again to be certain.

    Args:
        parts: all cases of the suite that could be read.
        report: receives a diagnostic for each duplicate id.
    """

    def __init__(self, parts: Sequence[Part], report: Report) -> None:
        self._parts = parts
        self._report = report
        self._ids = NumberedHashes()
        self._count = 0
        self._in_files: list[tuple[str, Span | None, str]] = []

    def __contains__(self, identity: str) -> bool:
        return self._ids.find(text_hash(identity)) is not None

    def seen(self, identity: str, case: Case, where: str) -> bool:
        """Add an id; returns whether it was probably already there.

        A duplicate is reported now if the first case is in memory, else after all files are read.

        Args:
            identity: of the case, or of the entry that expands to several.
            case: the case with the id.
            where: position in words, if its span does not show it.
        """
        before = len(self._ids)
        if self._ids.number(text_hash(identity)) == before:
            return False
        self._count += 1
        if self._count > SHOWN:
            return True
        cases = (one for one in self._listed() if identity in (one.id, one.id.removesuffix(one.id_suffix)))
        first = next(cases, None)
        if first is not None:
            self._report_duplicate(identity, case.span, first.span, where)
        else:
            self._in_files.append((identity, case.span, where))
        return True

    def end(self, invalid: Mapping[str, Sequence[Span]], top: Span) -> None:
        """Finish: report duplicates in files and of invalid cases, and how many were left out.

        Args:
            invalid: ids of the invalid cases → their positions.
            top: of the eval file.
        """
        places = self._in_streams({identity for identity, _, _ in self._in_files}) if self._in_files else {}
        for identity, span, where in self._in_files:
            first = next(
                (one for one in places.get(identity, ()) if span is None or one.line_of_file != span.line_of_file), None
            )
            if first is not None:  # otherwise it is another id with the same hash
                self._report_duplicate(identity, span, first, where)
        self._report_invalid(invalid)
        if self._count > SHOWN:
            message = f"{self._count:,} cases share the id of another case; showing the first {SHOWN}"
            self._report.error("duplicate-id", top, message)

    def forget(self) -> None:
        """Let go of the ids, which take much memory: whoever reads a file again holds what has read it."""
        self._ids = NumberedHashes()

    def _listed(self) -> Iterator[Case]:
        return (one for part in self._parts if not isinstance(part, StreamedCases) for one in part)

    def _report_invalid(self, invalid: Mapping[str, Sequence[Span]]) -> None:
        """Ids of cases that are wrong, which others have too: all that is wrong is reported at once."""
        listed = list(self._listed()) if invalid else []
        for identity, spans in invalid.items():
            if has_placeholder(identity):
                continue
            good = next((one.span for one in listed if one.id == identity), None) if identity in self else None
            written = [one for one in (*spans, good) if one is not None and one.line > 0]  # others stand in no file
            first, *others = sorted(written) or (None,)
            for span in others:
                self._report_duplicate(identity, span, first, "")

    def _report_duplicate(self, identity: str, span: Span | None, first: Span | None, where: str) -> None:
        other = f"; the first is at {shown(first.file)}:{first.line}" if first and first != span else ""
        self._report.error("duplicate-id", span, f"{where}two cases have the id '{identity}'{other}")

    def _in_streams(self, ids: Collection[str]) -> Mapping[str, Sequence[Span]]:
        """Where each of these ids stands first, and second: one pass over the files, whatever their length."""
        entries: dict[str, list[str]] = {}
        for identity in ids:
            for entry in _entries_of(identity):
                entries.setdefault(entry, []).append(identity)
        found: dict[str, list[Span]] = {}
        for part in self._parts:
            for written, span in part.places() if isinstance(part, StreamedCases) else ():
                for identity in entries.get(written or "", ()):
                    places = found.setdefault(identity, [])
                    places += [span] if len(places) < 2 else []
        return found


def _entries_of(identity: str) -> Iterator[str]:
    """The ids that a case of this id can have in a file: its own, or that of an entry whose lists were expanded."""
    yield identity
    for place, letter in enumerate(identity):
        if letter == "[":
            yield identity[:place]


STEPS = 10
"""Cases of a circle that are named."""

COMPARED = 20_000
"""Ids among which the nearest one is looked for."""


def read_dependencies(node: Node, reading: Reading) -> tuple[Dependency, ...]:
    """The ids of `depends_on`: one, or a list of them. What is wrong is reported and left out."""
    if is_empty(node) and not isinstance(node, Scalar):
        return ()
    found: dict[str, Dependency] = {}
    for item in node.items if isinstance(node, ListNode) else [node]:
        if isinstance(item, Scalar) and item.value is not None and item.text.strip():
            found.setdefault(item.text, Dependency(item.text, span_of(item.at)))
        else:
            reading.report.unfit(item, "'depends_on' must be the id of a case, or a list of ids")
    return tuple(found.values())


class Links(Struct):
    """Collects the links between the cases of a suite. Only cases with links are held.

    Attributes:
        unread: ids of invalid cases, which are therefore not unknown ids.
        lost: a case is invalid and its id could not be read, so no id can be reported as unknown.
    """

    unread: Collection[str] = ()
    lost: bool = False
    _depends_on: dict[str, tuple[Dependency, ...]] = field(default_factory=dict)
    _follows: dict[str, tuple[str, str]] = field(default_factory=dict)
    _last: dict[str, _Member] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether no case has links."""
        return not self._depends_on and not self._last

    def note(self, case: Case, report: Report) -> None:
        """One more case, in the order of the file."""
        if case.depends_on:
            self._depends_on[case.id] = case.depends_on
        if case.conversation_id is None:
            return
        before = self._last.get(case.conversation_id)
        member = _Member.of(case, before.story if before is not None else "")
        if before is not None:
            self._follows[case.id] = (before.id, before.story)
            _compare(member, before, case.conversation_id, case.span, report)
        self._last[case.conversation_id] = member

    def checked(
        self, known: Callable[[str], bool], ids: Callable[[], Iterable[str]], report: Report
    ) -> dict[str, Link]:
        """The links of every case that has some, or that others of its conversation follow.

        Args:
            known: whether a case of the suite has this id.
            ids: all of them, for the hint at an unknown one.
            report: gets the unknown ids, and every circle once.
        """
        self._report_unknown(known, ids, report)
        links = {
            case: Link(tuple(one.id for one in self._depends_on.get(case, ())), *self._follows.get(case, (None, "")))
            for case in {**self._follows, **self._depends_on}
        }
        for circle in islice(circles(links), SHOWN):
            self._report_circle(circle, report)
        return links

    def _report_unknown(self, known: Callable[[str], bool], ids: Callable[[], Iterable[str]], report: Report) -> None:
        if self.lost:
            return
        named = (one for several in self._depends_on.values() for one in several)
        unknown = [one for one in named if not known(one.id) and one.id not in self.unread]
        near = list(islice(ids(), COMPARED)) if unknown else []
        for dependency in unknown[:SHOWN]:
            message = f"no case of this suite has the id '{dependency.id}'"
            report.error("unknown-case", dependency.span, message, hint=did_you_mean(dependency.id, near))
        if len(unknown) > SHOWN:
            message = f"'depends_on' lists {len(unknown):,} ids that do not exist; showing the first {SHOWN}"
            report.error("unknown-case", unknown[0].span, message)

    def _report_circle(self, circle: list[str], report: Report) -> None:
        """Report a circle at a `depends_on` that is part of it: conversations alone never close one."""
        begin = next(
            at for at, case in enumerate(circle) if self._place_of_dependency(case, circle[(at + 1) % len(circle)])
        )
        turned = [*circle[begin:], *circle[:begin], circle[begin]]
        steps = [self._shown(case, needed) for case, needed in islice(pairwise(turned), STEPS)]
        if len(circle) > STEPS:
            steps.append(f"… {len(circle) - STEPS:,} more … → ")
        at = self._place_of_dependency(turned[0], turned[1])
        message = f"'{turned[0]}' depends on itself: {''.join(steps)}{turned[0]}"
        report.error("dependency-cycle", at.span if at is not None else None, message)

    def _shown(self, case: str, needed: str) -> str:
        return f"{case} → " if self._place_of_dependency(case, needed) else f"{case} → (before it in its conversation) "

    def _place_of_dependency(self, case: str, needed: str) -> Dependency | None:
        """Where the file says that a case depends on another."""
        return next((one for one in self._depends_on.get(case, ()) if one.id == needed), None)


class _Member(Struct, frozen=True):
    """What all cases of a conversation must have in common, and the hash of those up to this one."""

    id: str
    target: str | None
    repeat: int | None
    story: str

    @classmethod
    def of(cls, case: Case, history: str) -> _Member:
        digest = sha256(f"{history}{case.sha256}".encode()).hexdigest()
        return cls(case.id, case.target.name if case.target else None, case.repeat, digest)


def _compare(member: _Member, before: _Member, conversation: str, span: Span | None, report: Report) -> None:
    """A case goes on where the one before it ended: on the same target, sample for sample."""
    for key, own, other in (
        ("target", member.target, before.target),
        ("repeat", member.repeat, before.repeat),
    ):
        if own != other:
            found = " and ".join("the suite's value" if one is None else str(one) for one in (other, own))
            message = (
                f"'{before.id}' and '{member.id}' belong to one conversation, '{conversation}', "
                f"but their '{key}' differs: {found}"
            )
            report.error(
                "torn-conversation", span, message, hint=f"use the same '{key}' in all cases of a conversation"
            )


def circles(links: Mapping[str, Link]) -> Iterator[list[str]]:
    """Every circle that a walk along the links closes, each in the order of its steps.

    Without recursion: a conversation may have more cases than Python has frames.
    """
    done: set[str] = set()
    for start in links:
        path: dict[str, Iterator[str]] = {}
        step: str | None = start
        while step is not None or path:
            if step is not None and step not in done:
                path[step] = iter(links[step].needs if step in links else ())
            last = next(reversed(path), None)
            if last is None:
                break
            step = next(path[last], None)
            if step is None:
                done.add(last)
                del path[last]
            elif step in path:
                yield [*path][[*path].index(step) :]
                step = None
