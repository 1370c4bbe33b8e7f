"""Tables and columns that a SQL statement touches, checked against those that are allowed.

Strict where it is in doubt: what cannot be traced back to something allowed is denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from agentv.assertions.format.sql_names import Names, name_of
from agentv.matching.patterns import TIMEOUT_S, compiled

if TYPE_CHECKING:
    from regex import Pattern

DEEPEST = 500
"""Levels of a statement whose tables and columns are determined."""

_TRANSPARENT = (
    exp.Query,
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.TruncateTable,
    exp.Describe,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
)
"""Statements whose tables and columns are all in their tree."""

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)


def opaque(statement: exp.Expr) -> str | None:
    """Name of a statement whose tables are unknown: `SHOW`; None: they are known."""
    return None if isinstance(statement, _TRANSPARENT) else statement.key.upper()


def is_too_deep(statement: exp.Expr) -> bool:
    """Whether a statement is nested so deep that looking at its names would take too long: `a + a + a …`."""
    depths = {id(statement): 0}
    for node in statement.walk():
        depth = depths.setdefault(id(node), depths.get(id(node.parent), 0) + 1)
        if depth > DEEPEST:
            return True
    return False


def denied_tables(statement: exp.Expr, allowed: Iterable[str], dialect: str) -> list[str]:
    """The tables that a statement touches and that are not among the allowed ones, each once.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    rules = [_rule(one) for one in allowed]
    names = Names(dialect)
    aliases = {table.alias.lower() for table in statement.find_all(exp.Table) if table.alias}
    denied: dict[str, None] = {}
    for table in statement.find_all(exp.Table):
        is_alias = table.arg_key == "tables" and isinstance(statement, exp.Delete) and table.name.lower() in aliases
        if is_alias or names.is_derived(table):
            continue
        full = ".".join(part for part in (table.catalog, table.db, table.name) if part)
        authority = (_kind_of(table, statement), table.db or "null", table.name)
        # a table of that name in another schema is another table
        if not any(_allows(rule, (full,), authority) for rule in rules):
            denied[full] = None
    return list(denied)


def denied_columns(statement: exp.Expr, allowed: Iterable[str], dialect: str) -> list[str]:
    """The columns that a statement touches and that are not among the allowed ones, each once; `*` is all of them.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    rules = [_rule(one) for one in allowed]
    denied: dict[str, None] = {}
    for kind, table, name in (*_used_columns(statement, Names(dialect)), *_listed_columns(statement)):
        full = f"{table}.{name}" if table else name
        authority = (kind, table or "null", "(.*)" if name == "*" else name)
        if not any(_allows(rule, (name, full), authority) for rule in rules):
            denied[full] = None
    return list(denied)


Rule: TypeAlias = "str | tuple[Pattern[str], ...]"


def _rule(written: str) -> Rule:
    """A name in lower case, or the three patterns of promptfoo's form."""
    if "::" not in written:
        return written.strip().lower()
    return tuple(compiled(part, "i") for part in written.split("::"))


def _allows(rule: Rule, names: tuple[str, ...], authority: tuple[str, str, str]) -> bool:
    if isinstance(rule, str):
        return rule in {name.lower() for name in names}
    return all(
        pattern.pattern == part or pattern.fullmatch(part, timeout=TIMEOUT_S, concurrent=False) is not None
        for pattern, part in zip(rule, authority, strict=True)
    )


def _kind_of(node: exp.Expr, statement: exp.Expr) -> str:
    """What is done with a table or column: the name of the statement for its target, else `select`."""
    if not isinstance(statement, _WRITES) or node.find_ancestor(exp.Select) is not None:
        return "select"
    if isinstance(node, exp.Table) and node.find_ancestor(exp.From, exp.Join) is not None:
        return "select"
    return statement.key.removesuffix("table")


def _used_columns(statement: exp.Expr, names: Names) -> Iterator[tuple[str, str, str]]:
    """(what is done, table or "", column) of every column in an expression, `*` for all of a table's."""
    for column in statement.find_all(exp.Column):
        if not names.is_known_inside(column):
            yield _kind_of(column, statement), names.table_of(column), column.name
    for star in statement.find_all(exp.Star):
        parent = star.parent
        if isinstance(parent, exp.Returning) or (isinstance(parent, exp.Select) and names.reads_tables(parent)):
            yield "select", "", "*"
    for join in statement.find_all(exp.Join):
        around = join.find_ancestor(exp.Select)
        if around is not None and not names.reads_tables(around):
            continue
        if join.method == "NATURAL":
            yield "select", "", "*"  # by all columns that two tables have in common
        for one in join.args.get("using") or ():
            yield "select", "", one.name


def _listed_columns(statement: exp.Expr) -> Iterator[tuple[str, str, str]]:
    """Those in the list of an INSERT or CREATE, and those that an ALTER adds."""
    for schema in statement.find_all(exp.Schema):
        for one in schema.expressions:
            if isinstance(one, exp.Identifier | exp.ColumnDef):
                yield _kind_of(schema, statement), name_of(schema.this), one.name
    if isinstance(statement, exp.Alter):
        for added in statement.find_all(exp.ColumnDef):
            yield "alter", name_of(statement.this), added.name
    if isinstance(statement, exp.Insert) and not isinstance(statement.this, exp.Schema):
        yield "insert", name_of(statement.this), "*"
