"""Tables and columns that a SQL statement touches, checked against those that are allowed.

Strict where it is in doubt: what cannot be traced back to something allowed is denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from agentv.assertions.patterns import TIMEOUT_S, compiled

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
_READERS = (exp.Select, exp.Update, exp.Delete, exp.Merge)
_AFTER_SELECT = (exp.Order, exp.Group, exp.Having)


def opaque(statement: exp.Expr) -> str | None:
    """The name of a statement of which it cannot be told what it touches: `SHOW`; None: it can."""
    return None if isinstance(statement, _TRANSPARENT) else statement.key.upper()


def is_too_deep(statement: exp.Expr) -> bool:
    """Whether a statement is nested so deep that looking at its names would take too long: `a + a + a …`."""
    depths = {id(statement): 0}
    for node in statement.walk():
        depth = depths.setdefault(id(node), depths.get(id(node.parent), 0) + 1)
        if depth > DEEPEST:
            return True
    return False


def denied_tables(statement: exp.Expr, allowed: Iterable[str]) -> list[str]:
    """The tables that a statement touches and that are not among the allowed ones, each once.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    rules = [_rule(one) for one in allowed]
    names = _Names()
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


def denied_columns(statement: exp.Expr, allowed: Iterable[str]) -> list[str]:
    """The columns that a statement touches and that are not among the allowed ones, each once; `*` is all of them.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    rules = [_rule(one) for one in allowed]
    denied: dict[str, None] = {}
    for kind, table, name in (*_used_columns(statement), *_listed_columns(statement)):
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


def _used_columns(statement: exp.Expr) -> Iterator[tuple[str, str, str]]:
    """(what is done, table or "", column) of every column in an expression, `*` for all of a table's."""
    names = _Names()
    for column in statement.find_all(exp.Column):
        if not names.is_known_inside(column):
            yield _kind_of(column, statement), names.table_of(column), column.name
    for star in statement.find_all(exp.Star):
        if isinstance(star.parent, exp.Select) and not names.scope(star.parent).is_derived:
            yield "select", "", "*"


def _listed_columns(statement: exp.Expr) -> Iterator[tuple[str, str, str]]:
    """Those in the list of an INSERT or CREATE, and those that an ALTER adds."""
    for schema in statement.find_all(exp.Schema):
        for one in schema.expressions:
            if isinstance(one, exp.Identifier | exp.ColumnDef):
                yield _kind_of(schema, statement), _name_of(schema.this), one.name
    if isinstance(statement, exp.Alter):
        for added in statement.find_all(exp.ColumnDef):
            yield "alter", _name_of(statement.this), added.name
    if isinstance(statement, exp.Insert) and not isinstance(statement.this, exp.Schema):
        yield "insert", _name_of(statement.this), "*"


def _name_of(node: object) -> str:
    """A table by its own name, with its schema if it is given."""
    return ".".join(part for part in (node.db, node.name) if part) if isinstance(node, exp.Table) else ""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one SELECT, UPDATE, DELETE or MERGE reads directly.

    Attributes:
        sources: tables and subqueries by the names that they go by, in lower case.
        aliases: names that it gives to its own results.
        is_derived: all that it reads is made by the statement itself, where its columns are looked at.
    """

    sources: Mapping[str, exp.Expr]
    aliases: frozenset[str]
    is_derived: bool


class _Names:
    """What the names in one statement stand for. Every part of it is looked at once, however many names there are."""

    def __init__(self) -> None:
        self._scopes: dict[int, _Scope] = {}
        self._ctes: dict[int, dict[str, int]] = {}

    def is_derived(self, table: exp.Expr) -> bool:
        """Whether a name is that of a common table expression in reach, and no table."""
        if not isinstance(table, exp.Table) or table.db:
            return False
        name = table.name.lower()
        node: exp.Expr = table
        while node.parent is not None:
            parent = node.parent
            if isinstance(parent, exp.With):
                # inside of one, those before it are in reach; with RECURSIVE all of them
                place = self._places(parent).get(name)
                if place is not None and (parent.args.get("recursive") or place < (node.index or 0)):
                    return True
            elif not isinstance(node, exp.With) and name in self._places(parent):
                return True
            node = parent
        return False

    def _places(self, node: exp.Expr) -> dict[str, int]:
        """The common table expressions of a node, by name."""
        found = self._ctes.get(id(node))
        if found is None:
            clauses = (
                [node] if isinstance(node, exp.With) else [one for one in _parts(node) if isinstance(one, exp.With)]
            )
            found = {cte.alias.lower(): place for one in clauses for place, cte in enumerate(one.expressions)}
            self._ctes[id(node)] = found
        return found

    def scope(self, node: exp.Expr) -> _Scope:
        """What a node reads directly."""
        found = self._scopes.get(id(node))
        if found is None:
            sources = [one.this for one in _parts(node) if isinstance(one, exp.From | exp.Join | exp.Lateral)]
            sources += [one for one in (node.this, node.args.get("using")) if isinstance(one, exp.Table | exp.Subquery)]
            aliases = frozenset(one.alias.lower() for one in node.expressions if isinstance(one, exp.Alias))
            is_derived = bool(sources) and all(self._is_made_inside(one) for one in sources)
            found = _Scope({(one.alias_or_name or "").lower(): one for one in sources}, aliases, is_derived)
            self._scopes[id(node)] = found
        return found

    def is_known_inside(self, column: exp.Column) -> bool:
        """Whether a name is one that the statement gives itself: an alias, or a column of a subquery."""
        select = column.find_ancestor(exp.Select)
        if select is None:
            return False
        if column.table:
            source = self._source_called(column.table, column)
            return source is not None and self._is_made_inside(source)
        scope = self.scope(select)
        if column.name.lower() in scope.aliases and column.find_ancestor(*_AFTER_SELECT) is not None:
            return True
        return scope.is_derived

    def table_of(self, column: exp.Column) -> str:
        """The table that a qualified column belongs to, by its own name and not by its alias."""
        if not column.table:
            return ""
        return _name_of(self._source_called(column.table, column)) or column.table

    def _source_called(self, name: str, inner: exp.Expr) -> exp.Expr | None:
        """What an alias or table name stands for, looked up from the inside out."""
        around = inner.find_ancestor(*_READERS)
        while around is not None:
            source = self.scope(around).sources.get(name.lower())
            if source is not None:
                return source
            around = around.find_ancestor(*_READERS)
        return None

    def _is_made_inside(self, source: exp.Expr) -> bool:
        return isinstance(source, exp.Subquery) or self.is_derived(source)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    """The direct parts of a node."""
    return list(node.iter_expressions())
