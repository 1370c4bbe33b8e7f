"""The format family, SQL: `is-sql` and `contains-sql` (SPEC section 7.2), parsed by sqlglot (extra `metrics`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeAlias

from agentv.assertions.evidence import NO_OUTPUT, excerpt
from agentv.matching.patterns import PatternError, compiled
from agentv.matching.spelling import nearest
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.registry.fields import Alias, Declared, DeclaredAssertion, Doc, FileTexts, Issue, Text, missing_extra

if TYPE_CHECKING:
    from sqlglot import exp


DEFAULT_DIALECT = "mysql"
"""The default dialect, as in promptfoo."""

LONGEST = 50_000
"""Maximum length of SQL, in characters, which takes about half a second to parse."""


@dataclass(frozen=True, slots=True)
class SqlRules(Declared):
    """The required dialect, and the allowed tables and columns."""

    database_type: Annotated[
        Text, Alias(("databaseType", "dialect")), Doc("the dialect: mysql, postgres, sqlite, tsql, bigquery, …")
    ] = DEFAULT_DIALECT
    allowed_tables: Annotated[
        FileTexts | None,
        Alias(("allowedTables",)),
        Doc("the allowed tables: name, schema.name, or promptfoo's select::schema::name"),
    ] = None
    allowed_columns: Annotated[
        FileTexts | None,
        Alias(("allowedColumns",)),
        Doc("the allowed columns: name, table.name, * for all, or promptfoo's select::table::name"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report unknown dialects and invalid names."""
        if _missing_library() is None and dialect_of(self.database_type) is None:
            message = f"no SQL dialect '{self.database_type}'; known dialects: {', '.join(sorted(dialects()))}"
            near = nearest(self.database_type.lower(), [*dialects(), *DIALECTS], 0.5)
            yield Issue(("database_type",), message, hint=f"did you mean '{near}'?" if near else None)
        for option in ("allowed_tables", "allowed_columns"):
            for place, name in enumerate(getattr(self, option) or ()):
                yield from _name_issues(name, (option, place))


class _WithRules(DeclaredAssertion):
    """Base class of the types that parse SQL."""

    __slots__ = ()

    value: SqlRules | None

    @property
    def rules(self) -> SqlRules:
        """The rules of the entry, or the default ones."""
        return self.value or SqlRules()

    def label(self) -> str:
        """The dialect, if there are rules."""
        return "" if self.value is None else self.value.database_type

    def validate(self) -> Iterable[Issue]:
        """Report a missing library."""
        missing = _missing_library()
        return [missing] if missing is not None else []


@dataclass(frozen=True, slots=True)
class IsSql(_WithRules):
    """The answer as a whole is SQL: one or more statements, in a dialect, using only allowed tables and columns."""

    value: Annotated[SqlRules | None, Doc("the dialect, and the allowed tables and columns")] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Parse the answer, then check the tables and columns that it uses."""
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
"""Maximum number of characters of one answer that are parsed in total."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")


def code_blocks(text: str) -> Iterator[str]:
    """Yield the contents of the non-blank fenced code blocks in a text. An unclosed block extends to the end."""
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
    """Return messages about the tables and columns that the statements must not use."""
    if rules.allowed_tables is None and rules.allowed_columns is None:
        return []
    from agentv.assertions.format.sql_access import denied_columns, denied_tables, is_too_deep, opaque

    if any(is_too_deep(one) for one in statements):
        return UncheckedSql("the SQL is nested too deeply to tell what it uses")
    reasons: list[str] = []
    try:
        for one in statements:
            hidden = opaque(one)
            if hidden is not None:
                reasons.append(f"cannot tell what {hidden} uses")
                continue
            tables = denied_tables(one, rules.allowed_tables, dialect)
            columns = denied_columns(one, rules.allowed_columns, dialect)
            reasons += [f"table {name} is not allowed" for name in tables]
            reasons += [f"column {name} is not allowed" for name in columns]
    except RecursionError:
        return UncheckedSql("the SQL is nested too deeply to tell what it uses")
    except TimeoutError:
        return UncheckedSql("matching an allowed pattern against the names in the SQL takes too long")
    return reasons


def _missing_library() -> Issue | None:
    return missing_extra("sqlglot", "metrics", "parsing SQL")


def _name_issues(name: str, path: tuple[str | int, ...]) -> Iterator[Issue]:
    """Report what is wrong with an allowed name in promptfoo's form."""
    parts = name.split("::")
    if len(parts) not in {1, 3}:
        yield Issue(path, f"'{name}' must have three parts: select::schema::table or select::table::column")
        return
    for part in parts if len(parts) == 3 else ():
        try:
            compiled(part, "i")
        except PatternError as error:
            yield Issue(path, f"the pattern '{part}' does not compile: {error}", "bad-regex")


DIALECTS: Mapping[str, str] = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "transactsql": "tsql",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sqlite3": "sqlite",
}
"""Other name of a dialect → sqlglot's name; includes the names that promptfoo's parser uses."""

Statements: TypeAlias = tuple["exp.Expr", ...]


@dataclass(frozen=True, slots=True)
class BadSql:
    """The reason why a text is not SQL, with line and column from 1 if the parser reports them."""

    reason: str


@dataclass(frozen=True, slots=True)
class UncheckedSql:
    """The reason why a text could not be checked."""

    reason: str


@cache
def dialects() -> tuple[str, ...]:
    """Return sqlglot's dialects that are SQL."""
    from sqlglot.dialects.dialect import Dialects

    return tuple(one.value for one in Dialects if one.value not in {"", "dax", "prql"})


def dialect_of(name: str) -> str | None:
    """Return sqlglot's name of a dialect in any spelling, or None if sqlglot does not support it."""
    bare = name.strip().lower().replace(" ", "").replace("-", "").replace("_", "")
    known = DIALECTS.get(bare, bare)
    return known if known in dialects() else None


def parsed(sql: str, dialect: str) -> Statements | BadSql | UncheckedSql:
    """Return the statements of a text, at least one, or why it has none."""
    if len(sql) > LONGEST:
        return UncheckedSql(f"the SQL has {len(sql):,} characters; the maximum is {LONGEST:,}")
    log = logging.getLogger("sqlglot")  # its warnings would print model output to the terminal
    before, log.disabled = log.disabled, True
    try:
        statements = _parsed(sql, dialect)
    except RecursionError:
        return UncheckedSql("the SQL is nested too deeply")
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # parser bugs on unusual text
        return UncheckedSql(f"the parser failed on the SQL: {type(error).__name__}")
    finally:
        log.disabled = before
    return statements if isinstance(statements, BadSql) else _problem_of(statements) or statements


def _parsed(sql: str, dialect: str) -> Statements | BadSql:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    try:
        found = sqlglot.parse(sql, read=dialect)
        comma = _trailing_comma(sql, dialect)
    except ParseError as error:
        return BadSql(_parser_message(error))
    except TokenError as error:
        place = _UNCLOSED.search(str(error.__cause__))
        if place is None:
            return BadSql("unclosed comment or quotation")
        return BadSql(f"{place[1]}, opened at line {place[2]}, column {int(place[3]) + 1}")
    if comma is not None:
        return BadSql(comma)
    # the parser returns a Semicolon for comments after the last statement
    return tuple(one for one in found if one is not None and not isinstance(one, exp.Semicolon))


def _problem_of(statements: Statements) -> BadSql | UncheckedSql | None:
    """Return what is wrong with statements that could be parsed, or None."""
    from sqlglot import exp

    if not statements:
        return BadSql("contains no statement")
    for place, one in enumerate(statements, start=1):
        if not isinstance(one, _statement_types()):
            return BadSql(f"statement {place} is an expression, not a statement")
        if isinstance(one, exp.Select) and not one.expressions and one.find(exp.From) is None:
            return BadSql(f"statement {place} selects nothing")
    unparsed = next((one for one in statements if isinstance(one, exp.Command)), None)
    if unparsed is not None:
        # the rest was not parsed, so that prose that begins with "Create" looks the same
        return UncheckedSql(f"the parser recognizes only the first word of the statement, {unparsed.name.upper()}")
    return None


@cache
def _statement_types() -> tuple[type, ...]:
    from sqlglot import exp

    names = """
        Query DML DDL Create Drop Alter TruncateTable Describe Show Set Use Transaction Commit Rollback Pragma Grant
        Revoke Analyze Copy Kill Comment Cache Uncache Refresh LoadData Attach Detach Summarize Merge Command
    """
    return tuple(kind for kind in (getattr(exp, name, None) for name in names.split()) if kind is not None)


_LENIENT = frozenset({"bigquery", "clickhouse", "databricks", "duckdb", "snowflake"})
"""Dialects that allow a trailing comma in a list. sqlglot accepts it in every dialect."""

_AFTER_LISTS = frozenset({"FROM", "WHERE", "GROUP_BY", "ORDER_BY", "HAVING", "LIMIT", "R_PAREN", "SEMICOLON"})


def _trailing_comma(sql: str, dialect: str) -> str | None:
    from sqlglot import tokenize

    if dialect in _LENIENT:
        return None
    tokens = tokenize(sql, read=dialect)
    kinds = [token.token_type.name for token in tokens] + ["SEMICOLON"]
    for place, one in enumerate(tokens):
        if kinds[place] == "COMMA" and kinds[place + 1] in _AFTER_LISTS:
            return f"trailing comma at line {one.line}, column {one.col}"
    return None


_PARSER_INTERNALS = re.compile(r" but got <Token.*| for <class '[\w.]+'>", re.DOTALL)


def _parser_message(error: Exception) -> str:
    """Return the parser's first error message, without the names of its classes."""
    first = next(iter(getattr(error, "errors", ())), None)
    if first is None:
        return _PARSER_INTERNALS.sub("", str(error).split("\n", 1)[0])
    what = _PARSER_INTERNALS.sub("", str(first["description"]))
    word = str(first.get("highlight") or "")
    near = f" near {excerpt(word, 40)!r}" if word else ""
    column = max(int(first["col"]) - len(word) + 1, 1)  # the parser reports the end of the word
    return f"{what}{near} at line {first['line']}, column {column}"


_UNCLOSED = re.compile(r"(Missing .+) from (\d+):(\d+)")
