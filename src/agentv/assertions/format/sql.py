"""The format family, SQL: `is-sql` and `contains-sql` (SPEC section 7.2). Read by sqlglot, of the extra `metrics`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from agentv.assertions.evidence import NO_OUTPUT, excerpt
from agentv.assertions.format.sql_text import (
    DIALECTS,
    LONGEST,
    BadSql,
    Statement,
    Statements,
    UncheckedSql,
    dialect_of,
    dialects,
    parsed,
)
from agentv.matching.patterns import PatternError, compiled
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.registry.fields import Alias, Declared, DeclaredAssertion, Doc, FileTexts, Issue, Text, missing_extra

DEFAULT_DIALECT = "mysql"
"""The default dialect, as in promptfoo."""

Names = FileTexts


@dataclass(frozen=True, slots=True)
class SqlRules(Declared):
    """The required dialect, and the allowed tables and columns."""

    database_type: Annotated[
        Text, Alias(("databaseType", "dialect")), Doc("the dialect: mysql, postgres, sqlite, tsql, bigquery, …")
    ] = DEFAULT_DIALECT
    allowed_tables: Annotated[
        Names | None,
        Alias(("allowedTables",)),
        Doc("the allowed tables: name, schema.name, or promptfoo's select::schema::name"),
    ] = None
    allowed_columns: Annotated[
        Names | None,
        Alias(("allowedColumns",)),
        Doc("the allowed columns: name, table.name, * for all, or promptfoo's select::table::name"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Reports unknown dialects and invalid names."""
        if _missing() is None and dialect_of(self.database_type) is None:
            message = f"no SQL dialect '{self.database_type}'; known dialects: {', '.join(sorted(dialects()))}"
            yield Issue(("database_type",), message, hint=_nearest(self.database_type))
        for option in ("allowed_tables", "allowed_columns"):
            for place, name in enumerate(getattr(self, option) or ()):
                yield from _name_issues(name, (option, place))


class _WithRules(DeclaredAssertion):
    """Base class of the types that parse SQL."""

    __slots__ = ()

    value: SqlRules | None

    @property
    def rules(self) -> SqlRules:
        """The rules that hold."""
        return self.value or SqlRules()

    def label(self) -> str:
        """The dialect, where one is named."""
        return "" if self.value is None else self.value.database_type

    def validate(self) -> Iterable[Issue]:
        """Reports a missing library."""
        missing = _missing()
        return [missing] if missing is not None else []


@dataclass(frozen=True, slots=True)
class IsSql(_WithRules):
    """The answer as a whole is SQL: one or more statements, in a dialect, using only allowed tables and columns."""

    value: Annotated[SqlRules | None, Doc("the dialect, and the allowed tables and columns")] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Parse, then check what the statements use."""
        if context.output is None:
            return NO_OUTPUT
        return _graded("is SQL", context.output, self.rules)


@dataclass(frozen=True, slots=True)
class ContainsSql(_WithRules):
    """A fenced code block of the answer is SQL, or the answer as a whole is."""

    value: Annotated[SqlRules | None, Doc("the dialect, and the allowed tables and columns")] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Try the code blocks in order, then the whole text. The first valid one is enough."""
        if context.output is None:
            return NO_OUTPUT
        unchecked = None
        read = 0
        for piece in (*code_blocks(context.output), context.output):
            read += min(len(piece), LONGEST)
            if read > MOST_READ:
                return Grade.errored("sql-unchecked", "the answer contains more code than the maximum")
            grade = _graded("contains SQL", piece, self.rules)
            if grade.passed:
                return grade
            unchecked = unchecked or (grade if grade.error is not None else None)
        return unchecked or grade


MOST_READ = 5 * LONGEST
"""Characters of one answer that are read in all."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")


def code_blocks(text: str) -> Iterator[str]:
    """Contents of the fenced code blocks of a text, without blank ones. A block without an end extends to the end."""
    fence = ""
    block: list[str] = []
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line)
        if not fence:
            fence = match[1] if match else ""
        elif match and match[1].startswith(fence) and not match[2].strip():
            yield from _unless_blank(block)
            fence, block = "", []
        else:
            block.append(line)
    yield from _unless_blank(block)


def _unless_blank(lines: list[str]) -> Iterator[str]:
    block = "".join(lines)
    if block.strip():
        yield block


def _graded(text: str, sql: str, rules: SqlRules) -> Grade:
    dialect = dialect_of(rules.database_type)
    read = parsed(sql, dialect if dialect is not None else DEFAULT_DIALECT)
    shown = f"{text} ({rules.database_type})"
    if isinstance(read, BadSql):
        return Grade.of(False, shown, excerpt(f"{read.reason}: {excerpt(sql, 100)}"))
    denied = read if isinstance(read, UncheckedSql) else _denied(read, rules, dialect or DEFAULT_DIALECT)
    if isinstance(denied, UncheckedSql):
        return Grade.errored("sql-unchecked", denied.reason)
    return Grade.of(not denied, shown, excerpt("; ".join(denied) or sql))


def _denied(statements: Statements, rules: SqlRules, dialect: str) -> list[str] | UncheckedSql:
    """What statements touch and may not."""
    if rules.allowed_tables is None and rules.allowed_columns is None:
        return []
    from agentv.assertions.format.sql_access import is_too_deep

    if any(is_too_deep(one) for one in statements):
        return UncheckedSql("the SQL is nested too deeply to tell what it uses")
    try:
        return [reason for one in statements for reason in _not_allowed(one, rules, dialect)]
    except RecursionError:
        return UncheckedSql("the SQL is nested too deeply to tell what it uses")
    except TimeoutError:
        return UncheckedSql("matching an allowed pattern against the names in the SQL takes too long")


def _not_allowed(statement: Statement, rules: SqlRules, dialect: str) -> Iterator[str]:
    from agentv.assertions.format.sql_access import denied_columns, denied_tables, opaque

    hidden = opaque(statement)
    if hidden is not None:
        yield f"cannot tell what {hidden} uses"
        return
    if rules.allowed_tables is not None:
        yield from (f"table {name} is not allowed" for name in denied_tables(statement, rules.allowed_tables, dialect))
    if rules.allowed_columns is not None:
        yield from (
            f"column {name} is not allowed" for name in denied_columns(statement, rules.allowed_columns, dialect)
        )


def _missing() -> Issue | None:
    return missing_extra("sqlglot", "metrics", "parsing SQL")


def _name_issues(name: str, path: tuple[str | int, ...]) -> Iterator[Issue]:
    """What is wrong with an allowed name in promptfoo's form."""
    parts = name.split("::")
    if len(parts) not in {1, 3}:
        yield Issue(path, f"'{name}' must have three parts: select::schema::table or select::table::column")
        return
    for part in parts if len(parts) == 3 else ():
        try:
            compiled(part, "i")
        except PatternError as error:
            yield Issue(path, f"the pattern '{part}' does not compile: {error}", "bad-regex")


def _nearest(name: str) -> str | None:
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    known = [*dialects(), *DIALECTS]
    near = extractOne(name.lower(), known, scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else None
