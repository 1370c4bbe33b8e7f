"""SQL statements from text, by sqlglot: text that it cannot check is distinguished from invalid SQL."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from agentv.assertions.evidence import excerpt

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 50_000
"""Characters that are read, in about half a second."""

DIALECTS: Mapping[str, str] = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "transactsql": "tsql",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sqlite3": "sqlite",
}
"""Other names → sqlglot's; those of promptfoo's parser among them."""

Statement: TypeAlias = "exp.Expr"
Statements: TypeAlias = tuple["exp.Expr", ...]


@dataclass(frozen=True, slots=True)
class BadSql:
    """Why a text is no SQL; with line and column, both from 1, where the parser knows them."""

    reason: str


@dataclass(frozen=True, slots=True)
class UncheckedSql:
    """Why it is unknown whether a text is SQL."""

    reason: str


@cache
def dialects() -> tuple[str, ...]:
    """The dialects that sqlglot knows and that are SQL."""
    from sqlglot.dialects.dialect import Dialects

    return tuple(one.value for one in Dialects if one.value not in {"", "dax", "prql"})


def dialect_of(name: str) -> str | None:
    """The parser's name of a dialect, however it is spelled; None if the parser lacks it."""
    bare = name.strip().lower().replace(" ", "").replace("-", "").replace("_", "")
    known = DIALECTS.get(bare, bare)
    return known if known in dialects() else None


def parsed(sql: str, dialect: str) -> Statements | BadSql | UncheckedSql:
    """The statements of a text; at least one."""
    if len(sql) > LONGEST:
        return UncheckedSql(f"the SQL has {len(sql):,} characters; the maximum is {LONGEST:,}")
    try:
        with _quiet():
            statements = _parsed(sql, dialect)
    except RecursionError:
        return UncheckedSql("the SQL is nested too deeply")
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # bugs of the parser, on odd text
        return UncheckedSql(f"the parser failed on the SQL: {type(error).__name__}")
    return statements if isinstance(statements, BadSql) else _checked(statements) or statements


def _parsed(sql: str, dialect: str) -> Statements | BadSql:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    try:
        found = sqlglot.parse(sql, read=dialect)
        comma = _comma_before_nothing(sql, dialect)
    except ParseError as error:
        return BadSql(_parser_message(error))
    except TokenError as error:
        return BadSql(_token_message(error))
    if comma is not None:
        return BadSql(comma)
    # comments behind the last statement are a semicolon to the parser
    return tuple(one for one in found if one is not None and not isinstance(one, exp.Semicolon))


def _checked(statements: Statements) -> BadSql | UncheckedSql | None:
    """What is wrong with statements although they could be parsed; None: nothing."""
    from sqlglot import exp

    if not statements:
        return BadSql("contains no statement")
    for place, one in enumerate(statements, start=1):
        if not _is_statement(one):
            return BadSql(f"statement {place} is an expression, not a statement")
        if isinstance(one, exp.Select) and not one.expressions and one.find(exp.From) is None:
            return BadSql(f"statement {place} selects nothing")
    vague = next((one for one in statements if isinstance(one, exp.Command)), None)
    if vague is not None:
        # its first word is known and the rest is unread, so that prose which begins with "Create" looks the same
        return UncheckedSql(f"the parser recognizes only the first word of the statement, {vague.name.upper()}")
    return None


@cache
def _kinds() -> tuple[type, ...]:
    from sqlglot import exp

    names = """
        Query DML DDL Create Drop Alter TruncateTable Describe Show Set Use Transaction Commit Rollback Pragma Grant
        Revoke Analyze Copy Kill Comment Cache Uncache Refresh LoadData Attach Detach Summarize Merge Command
    """
    return tuple(kind for kind in (getattr(exp, name, None) for name in names.split()) if kind is not None)


def _is_statement(one: exp.Expr) -> bool:
    return isinstance(one, _kinds())


_LENIENT = frozenset({"bigquery", "clickhouse", "databricks", "duckdb", "snowflake"})
"""Dialects that allow a comma behind the last item of a list. sqlglot lets it pass in all of them."""

_ENDS = frozenset({"FROM", "WHERE", "GROUP_BY", "ORDER_BY", "HAVING", "LIMIT", "R_PAREN", "SEMICOLON"})


def _comma_before_nothing(sql: str, dialect: str) -> str | None:
    from sqlglot import tokenize

    if dialect in _LENIENT:
        return None
    read = tokenize(sql, read=dialect)
    kinds = [token.token_type.name for token in read] + ["SEMICOLON"]
    for place, one in enumerate(read):
        if kinds[place] == "COMMA" and kinds[place + 1] in _ENDS:
            return f"trailing comma at line {one.line}, column {one.col}"
    return None


_INSIDE = re.compile(r" but got <Token.*| for <class '[\w.]+'>", re.DOTALL)


def _parser_message(error: Exception) -> str:
    """The parser's first complaint, without the names of its own classes."""
    first = next(iter(getattr(error, "errors", ())), None)
    if first is None:
        return _INSIDE.sub("", str(error).split("\n", 1)[0])
    what = _INSIDE.sub("", str(first["description"]))
    word = str(first.get("highlight") or "")
    near = f" near {excerpt(word, 40)!r}" if word else ""
    column = max(int(first["col"]) - len(word) + 1, 1)  # the parser counts up to the end of the word
    return f"{what}{near} at line {first['line']}, column {column}"


_FROM = re.compile(r"(Missing .+) from (\d+):(\d+)")


def _token_message(error: Exception) -> str:
    found = _FROM.search(str(error.__cause__))
    if found is None:
        return "unclosed comment or quotation"
    return f"{found[1]}, opened at line {found[2]}, column {int(found[3]) + 1}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the parser silent: its warnings quote statements, text of a model, and would end on our terminal."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
