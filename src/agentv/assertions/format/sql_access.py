"""Tables and columns that a SQL statement touches, checked against those that are allowed.

Strict where it is in doubt: what cannot be traced back to something allowed is denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.mysql import MySQL

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


def denied_tables(statement: exp.Expr, allowed: Iterable[str] | None, dialect: str) -> list[str]:
    """The tables that a statement touches and that are not among the allowed ones, each once; None: all are.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    return _denied(_tables(statement, Names(dialect)), allowed)


def denied_columns(statement: exp.Expr, allowed: Iterable[str] | None, dialect: str) -> list[str]:
    """The columns that a statement touches and that are not among the allowed ones, each once; `*` is all of them.

    Raises:
        TimeoutError: a pattern takes too long.
    """
    return _denied(_columns(statement, Names(dialect)), allowed)


Rule: TypeAlias = "str | tuple[Pattern[str], ...]"
Used: TypeAlias = tuple[tuple[str, ...], tuple[str, str, str]]
"""The names of a table or column, the full one last, and what promptfoo's form of a rule is compared with."""


def _denied(used: Iterable[Used], allowed: Iterable[str] | None) -> list[str]:
    if allowed is None:
        return []
    rules = [_rule(one) for one in allowed]
    denied = (names[-1] for names, authority in used if not any(_allows(rule, names, authority) for rule in rules))
    return list(dict.fromkeys(denied))


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


def _tables(statement: exp.Expr, names: Names) -> Iterator[Used]:
    aliases = {table.alias.lower() for table in statement.find_all(exp.Table) if table.alias}
    for table in statement.find_all(exp.Table):
        is_alias = table.arg_key == "tables" and isinstance(statement, exp.Delete) and table.name.lower() in aliases
        if not is_alias and not names.is_derived(table):
            full = ".".join(part for part in (table.catalog, table.db, table.name) if part)
            # a table of that name in another schema is another table
            yield (full,), (_kind_of(table, statement), table.db or "null", table.name)


def _columns(statement: exp.Expr, names: Names) -> Iterator[Used]:
    for kind, table, name in chain(_used_columns(statement, names), _listed_columns(statement)):
        full = f"{table}.{name}" if table else name
        yield (name, full), (kind, table or "null", "(.*)" if name == "*" else name)


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


_READERS = (exp.Select, exp.Update, exp.Delete, exp.Merge)
_ALIASES_IN = frozenset({"order", "group", "having"})
"""Clauses of a SELECT in which its aliases may be used."""

_OWN_ORDER = (exp.Window, exp.WithinGroup, exp.AggFunc)
"""Where a name is a column of what is read, whatever the aliases of the SELECT around it."""

_BOUNDARIES = (*_READERS, *_OWN_ORDER, exp.SetOperation, exp.CTE, exp.Lateral, exp.From, exp.Join)


def name_of(node: object) -> str:
    """A table by its own name, with its schema if it is given."""
    return ".".join(part for part in (node.db, node.name) if part) if isinstance(node, exp.Table) else ""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one SELECT, UPDATE, DELETE or MERGE reads directly.

    Attributes:
        sources: tables and subqueries by the names that they go by.
        aliases: names that it gives to its own results.
        is_derived: all that it reads is made by the statement itself, where its columns are looked at.
        outputs: columns of all its sources that are made by the statement itself; `*` is any.
    """

    sources: Mapping[str, exp.Expr]
    aliases: frozenset[str]
    is_derived: bool
    outputs: frozenset[str]


class Names:
    """The names of one statement. Every part of it is looked at once, however many names there are.

    Names are compared as in the dialect: `Users` and `users` are one table to SQLite and two to MySQL.

    Args:
        dialect: sqlglot's name of it.
    """

    def __init__(self, dialect: str) -> None:
        self._dialect = Dialect.get_or_raise(dialect)
        self._scopes: dict[int, _Scope] = {}
        self._ctes: dict[int, dict[str, tuple[int, exp.Expr]]] = {}
        self._nearest: dict[int, exp.Expr | None] = {}

    def is_derived(self, table: exp.Expr) -> bool:
        """Whether a name is that of a common table expression in reach, and no table."""
        return self._cte_called(table) is not None

    def is_known_inside(self, column: exp.Column) -> bool:
        """Whether a name is one that the statement gives itself: an alias, or a column of a subquery."""
        if column.args.get("table") is not None:
            source = self._source_called(column.args["table"], column)
            return source is not None and self._query_of(source) is not None
        name = self._column_key(column.this)
        if self._is_alias(name, column):
            return True
        for reader in self._visible(column):
            scope = self._scope(reader)
            if scope.sources and not scope.is_derived:
                return False
            if name in scope.outputs or "*" in scope.outputs:
                return True
        return False

    def reads_tables(self, select: exp.Select) -> bool:
        """Whether a `*` of a SELECT is columns of a table."""
        return not self._scope(select).is_derived

    def table_of(self, column: exp.Column) -> str:
        """The table that a qualified column belongs to, by its own name and not by its alias."""
        if not column.table:
            return ""
        return name_of(self._source_called(column.args["table"], column)) or column.table

    def _cte_called(self, table: exp.Expr) -> exp.Expr | None:
        if not isinstance(table, exp.Table) or table.db:
            return None
        name = self._key(table.this)
        node: exp.Expr = table
        while node.parent is not None:
            parent = node.parent
            found = self._places(parent).get(name)
            if isinstance(parent, exp.With):
                # inside of one, those before it are in reach; with RECURSIVE all of them
                if found is not None and (parent.args.get("recursive") or found[0] < (node.index or 0)):
                    return found[1]
            elif not isinstance(node, exp.With) and found is not None:
                return found[1]
            node = parent
        return None

    def _places(self, node: exp.Expr) -> dict[str, tuple[int, exp.Expr]]:
        """The common table expressions of a node with their places, by name."""
        found = self._ctes.get(id(node))
        if found is None:
            clause = node if isinstance(node, exp.With) else node.args.get("with_")
            ctes = clause.expressions if isinstance(clause, exp.With) else ()
            found = {self._key(cte.args["alias"].this): (place, cte) for place, cte in enumerate(ctes)}
            self._ctes[id(node)] = found
        return found

    def _scope(self, node: exp.Expr) -> _Scope:
        found = self._scopes.get(id(node))
        if found is None:
            sources = list(_sources(node))
            queries = [self._query_of(one) for one in sources]
            self._scopes[id(node)] = found = _Scope(
                {self._key(_identifier_of(one)): one for one in sources},
                frozenset(
                    self._column_key(one.args["alias"]) for one in node.expressions if isinstance(one, exp.Alias)
                ),
                is_derived=bool(sources) and all(one is not None for one in queries),
                outputs=frozenset(name for query in queries if query is not None for name in self._outputs(query)),
            )
        return found

    def _query_of(self, source: exp.Expr) -> exp.Expr | None:
        """What makes the rows of a source within the statement; None for a table, and for tables that are joined."""
        cte = self._cte_called(source)
        if cte is not None:
            return cte
        inner = source.this if isinstance(source, exp.Lateral) else source
        is_query = isinstance(inner, exp.Subquery) and isinstance(inner.unnest(), exp.Select | exp.SetOperation)
        return source if is_query else None

    def _outputs(self, source: exp.Expr) -> Iterator[str]:
        """The columns of a subquery or common table expression; `*` where they are not known."""
        alias = source.args.get("alias")
        renamed = alias.columns if isinstance(alias, exp.TableAlias) else ()
        yield from map(self._column_key, renamed)
        if not renamed:
            yield from self._selected(source.this)

    def _selected(self, query: exp.Expr) -> Iterator[str]:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        returning = query.args.get("returning")
        rows = query if isinstance(query, exp.Select) else returning
        if rows is None:
            yield "*"
            return
        for one in rows.expressions:
            is_star = isinstance(one, exp.Star) or isinstance(one.this, exp.Star)
            identifier = one.args.get("alias") if isinstance(one, exp.Alias) else one.this
            if is_star:
                yield "*"
            elif isinstance(identifier, exp.Identifier):
                yield self._column_key(identifier)

    def _is_alias(self, name: str, column: exp.Column) -> bool:
        """Whether a column is a result of the query around it, named again behind its SELECT list."""
        for child, parent in self._boundaries(column):
            if isinstance(parent, exp.SetOperation):
                return child.arg_key == "order" and name in set(self._selected(parent))
            if isinstance(parent, exp.Select):
                return child.arg_key in _ALIASES_IN and name in self._scope(parent).aliases
            if isinstance(parent, (*_READERS, *_OWN_ORDER)):
                return False
        return False

    def _source_called(self, identifier: exp.Expr, inner: exp.Expr) -> exp.Expr | None:
        """What an alias or table name stands for, looked up from the inside out."""
        name = self._key(identifier)
        scopes = [self._scope(reader) for reader in self._visible(inner)]
        found = next((scope.sources[name] for scope in scopes if name in scope.sources), None)
        if found is not None:
            return found
        # an error in this dialect, but for MySQL where files have no case
        loose = (source for scope in scopes for key, source in scope.sources.items() if key.lower() == name.lower())
        return next(loose, None)

    def _visible(self, node: exp.Expr) -> Iterator[exp.Expr]:
        """The statements whose sources a name may mean, from the inside out.

        A subquery of FROM, and a common table expression, do not see what stands beside them, but for LATERAL.
        """
        sees = True
        is_lateral = False
        for child, parent in self._boundaries(node):
            if isinstance(parent, _READERS):
                if sees:
                    yield parent
                sees, is_lateral = not (isinstance(parent, exp.Merge) and child.arg_key == "using"), False
            elif isinstance(parent, exp.CTE):
                sees = False
            elif isinstance(parent, exp.Lateral):
                is_lateral = True
            elif isinstance(parent, exp.From | exp.Join) and child.arg_key == "this" and not is_lateral:
                sees = isinstance(child, exp.Table) and sees

    def _boundaries(self, node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
        """The places above a node at which names change their meaning, from the inside out: a part, and the whole."""
        child = self._boundary(node)
        while child is not None and child.parent is not None:
            yield child, child.parent
            child = self._boundary(child.parent)

    def _boundary(self, node: exp.Expr) -> exp.Expr | None:
        path: list[exp.Expr] = []
        while id(node) not in self._nearest:
            path.append(node)
            parent = node.parent
            if parent is None or isinstance(parent, _BOUNDARIES):
                self._nearest[id(node)] = None if parent is None else node
            else:
                node = parent
        found = self._nearest[id(node)]
        self._nearest.update((id(one), found) for one in path)
        return found

    def _key(self, node: object) -> str:
        """A name of a table in the form in which equal names are equal."""
        if not isinstance(node, exp.Identifier):
            return ""
        copy = exp.Identifier(this=node.this, quoted=node.args.get("quoted"))
        return str(self._dialect.normalize_identifier(copy).this)

    def _column_key(self, node: object) -> str:
        """A name of a column in that form; MySQL tells capitals apart in tables alone."""
        if isinstance(node, exp.Identifier) and isinstance(self._dialect, MySQL):
            return str(node.this).lower()
        return self._key(node)


def _sources(node: exp.Expr) -> Iterator[exp.Expr]:
    """The tables and subqueries that a SELECT, UPDATE, DELETE or MERGE reads directly, also those in parentheses."""
    parts = (one for one in node.iter_expressions() if isinstance(one, exp.From | exp.Join | exp.Lateral))
    direct = [one if isinstance(one, exp.Lateral) else one.this for one in parts]
    using = node.args.get("using")
    direct += [node.this, *(using if isinstance(using, list) else [using])]
    for one in direct:
        yield from _with_joined(one)


def _with_joined(source: object) -> Iterator[exp.Expr]:
    if not isinstance(source, exp.Table | exp.Subquery | exp.UDTF):
        return
    yield source
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table | exp.Subquery):
        yield from _with_joined(source.this)
    for join in source.args.get("joins") or ():
        yield from _with_joined(join.this)


def _identifier_of(source: exp.Expr) -> object:
    """The name by which a source is called."""
    alias = source.args.get("alias")
    return alias.this if isinstance(alias, exp.TableAlias) else source.this
