"""Check the tables and columns that a SQL statement uses against the allowed ones.

A name that cannot be traced back to something allowed is denied.
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
"""Maximum nesting depth of a statement whose tables and columns are determined."""

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
"""Statements whose syntax tree contains all their tables and columns."""

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)


def opaque(statement: exp.Expr) -> str | None:
    """Return the name of a statement whose tables are unknown, such as `SHOW`, or None if they are known."""
    return None if isinstance(statement, _TRANSPARENT) else statement.key.upper()


def is_too_deep(statement: exp.Expr) -> bool:
    """Return whether a statement, such as `a + a + a …`, is nested too deeply to resolve its names in time."""
    depths = {id(statement): 0}
    for node in statement.walk():
        depth = depths.setdefault(id(node), depths.get(id(node.parent), 0) + 1)
        if depth > DEEPEST:
            return True
    return False


def denied_tables(statement: exp.Expr, allowed: Iterable[str] | None, dialect: str) -> list[str]:
    """Return the tables that a statement uses and that are not allowed, without duplicates. None allows all tables.

    Raises:
        TimeoutError: matching a pattern takes too long.
    """
    return _denied(_tables(statement, Resolver(dialect)), allowed)


def denied_columns(statement: exp.Expr, allowed: Iterable[str] | None, dialect: str) -> list[str]:
    """Return the columns that a statement uses and that are not allowed, without duplicates. None allows all columns.

    `*` stands for all columns of a table.

    Raises:
        TimeoutError: matching a pattern takes too long.
    """
    return _denied(_columns(statement, Resolver(dialect)), allowed)


Rule: TypeAlias = "str | tuple[Pattern[str], ...]"
Used: TypeAlias = tuple[tuple[str, ...], tuple[str, str, str]]
"""(names of a table or column, the full one last; the parts that are matched with promptfoo's form of a rule)."""


def _denied(used: Iterable[Used], allowed: Iterable[str] | None) -> list[str]:
    if allowed is None:
        return []
    rules = [_rule(one) for one in allowed]
    denied = (names[-1] for names, authority in used if not any(_allows(rule, names, authority) for rule in rules))
    return list(dict.fromkeys(denied))


def _rule(written: str) -> Rule:
    """Return an allowed name in lower case, or the three patterns of promptfoo's form."""
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
    """Return how a table or column is used: the statement's name, such as `insert`, for its target, else `select`."""
    if not isinstance(statement, _WRITES) or node.find_ancestor(exp.Select) is not None:
        return "select"
    if isinstance(node, exp.Table) and node.find_ancestor(exp.From, exp.Join) is not None:
        return "select"
    return statement.key.removesuffix("table")


def _tables(statement: exp.Expr, resolver: Resolver) -> Iterator[Used]:
    aliases = {table.alias.lower() for table in statement.find_all(exp.Table) if table.alias}
    for table in statement.find_all(exp.Table):
        is_alias = table.arg_key == "tables" and isinstance(statement, exp.Delete) and table.name.lower() in aliases
        if not is_alias and not resolver.is_derived(table):
            full = ".".join(part for part in (table.catalog, table.db, table.name) if part)
            # the full name only: a table of the same name in another schema is a different table
            yield (full,), (_kind_of(table, statement), table.db or "null", table.name)


def _columns(statement: exp.Expr, resolver: Resolver) -> Iterator[Used]:
    for kind, table, name in chain(_used_columns(statement, resolver), _listed_columns(statement)):
        full = f"{table}.{name}" if table else name
        yield (name, full), (kind, table or "null", "(.*)" if name == "*" else name)


def _used_columns(statement: exp.Expr, resolver: Resolver) -> Iterator[tuple[str, str, str]]:
    """Yield (how it is used, table or "", column) for every column in an expression; `*` is all columns of a table."""
    for column in statement.find_all(exp.Column):
        if not resolver.is_defined_inside(column):
            yield _kind_of(column, statement), resolver.table_of(column), column.name
    for star in statement.find_all(exp.Star):
        parent = star.parent
        if isinstance(parent, exp.Returning) or (isinstance(parent, exp.Select) and resolver.reads_tables(parent)):
            yield "select", "", "*"
    for join in statement.find_all(exp.Join):
        select = join.find_ancestor(exp.Select)
        if select is not None and not resolver.reads_tables(select):
            continue
        if join.method == "NATURAL":
            yield "select", "", "*"  # joins by all columns that the tables share
        for one in join.args.get("using") or ():
            yield "select", "", one.name


def _listed_columns(statement: exp.Expr) -> Iterator[tuple[str, str, str]]:
    """Yield (how it is used, table or "", column) for columns that an INSERT or CREATE lists or an ALTER adds."""
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

_OWN_SCOPES = (exp.Window, exp.WithinGroup, exp.AggFunc)
"""Expressions in which a name is a column of a source, even if the SELECT around them has an alias of that name."""

_BOUNDARIES = (*_READERS, *_OWN_SCOPES, exp.SetOperation, exp.CTE, exp.Lateral, exp.From, exp.Join)


def name_of(node: object) -> str:
    """Return the name of a table, with its schema if given, or "" if the node is not a table."""
    return ".".join(part for part in (node.db, node.name) if part) if isinstance(node, exp.Table) else ""


@dataclass(frozen=True, slots=True)
class _Scope:
    """The sources that one SELECT, UPDATE, DELETE or MERGE reads directly.

    Attributes:
        sources: tables and subqueries by alias or name.
        aliases: aliases of its own results.
        is_derived: whether all sources are subqueries or common table expressions, whose columns are checked there.
        outputs: columns of such sources; `*` is any column.
    """

    sources: Mapping[str, exp.Expr]
    aliases: frozenset[str]
    is_derived: bool
    outputs: frozenset[str]


class Resolver:
    """Resolves the names in one statement. Results are cached, so that every part of it is examined once.

    Names are compared by the dialect's rules: `Users` and `users` are the same table in SQLite but not in MySQL.

    Args:
        dialect: sqlglot's name of the dialect.
    """

    def __init__(self, dialect: str) -> None:
        self._dialect = Dialect.get_or_raise(dialect)
        self._scopes: dict[int, _Scope] = {}
        self._ctes: dict[int, dict[str, tuple[int, exp.Expr]]] = {}
        self._nearest: dict[int, exp.Expr | None] = {}

    def is_derived(self, table: exp.Expr) -> bool:
        """Return whether a name refers to a visible common table expression rather than a table."""
        return self._cte_named(table) is not None

    def is_defined_inside(self, column: exp.Column) -> bool:
        """Return whether the statement itself defines a column, as an alias or in a subquery."""
        if column.args.get("table") is not None:
            source = self._source_named(column.args["table"], column)
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
        """Return whether `*` in a SELECT includes columns of a table."""
        return not self._scope(select).is_derived

    def table_of(self, column: exp.Column) -> str:
        """Return the table of a qualified column, by its name rather than its alias; "" for an unqualified column."""
        if not column.table:
            return ""
        return name_of(self._source_named(column.args["table"], column)) or column.table

    def _cte_named(self, table: exp.Expr) -> exp.Expr | None:
        if not isinstance(table, exp.Table) or table.db:
            return None
        name = self._key(table.this)
        node: exp.Expr = table
        while node.parent is not None:
            parent = node.parent
            found = self._ctes_of(parent).get(name)
            if isinstance(parent, exp.With):
                # a common table expression sees those before it, or all of them with RECURSIVE
                if found is not None and (parent.args.get("recursive") or found[0] < (node.index or 0)):
                    return found[1]
            elif not isinstance(node, exp.With) and found is not None:
                return found[1]
            node = parent
        return None

    def _ctes_of(self, node: exp.Expr) -> dict[str, tuple[int, exp.Expr]]:
        """Return the common table expressions of a node by name, each with its position."""
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
        """Return the subquery or common table expression that a source is; None for a table or joined tables."""
        cte = self._cte_named(source)
        if cte is not None:
            return cte
        inner = source.this if isinstance(source, exp.Lateral) else source
        is_query = isinstance(inner, exp.Subquery) and isinstance(inner.unnest(), exp.Select | exp.SetOperation)
        return source if is_query else None

    def _outputs(self, source: exp.Expr) -> Iterator[str]:
        """Yield the columns of a subquery or common table expression; `*` if they are unknown."""
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
        """Return whether a column in a later clause refers to an alias or result of the query around it."""
        for child, parent in self._boundaries(column):
            if isinstance(parent, exp.SetOperation):
                return child.arg_key == "order" and name in set(self._selected(parent))
            if isinstance(parent, exp.Select):
                return child.arg_key in _ALIASES_IN and name in self._scope(parent).aliases
            if isinstance(parent, (*_READERS, *_OWN_SCOPES)):
                return False
        return False

    def _source_named(self, identifier: exp.Expr, inner: exp.Expr) -> exp.Expr | None:
        """Return the source that an alias or table name refers to, from the innermost scope outwards, or None."""
        name = self._key(identifier)
        scopes = [self._scope(reader) for reader in self._visible(inner)]
        found = next((scope.sources[name] for scope in scopes if name in scope.sources), None)
        if found is not None:
            return found
        # an error in this dialect, except in MySQL on a case-insensitive file system
        loose = (source for scope in scopes for key, source in scope.sources.items() if key.lower() == name.lower())
        return next(loose, None)

    def _visible(self, node: exp.Expr) -> Iterator[exp.Expr]:
        """Yield the statements whose sources a name can refer to, from the innermost outwards.

        A subquery in FROM, unless it is LATERAL, and a common table expression do not see the sources beside them.
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
        """Yield (child, ancestor) for each ancestor that changes the meaning of names, from the innermost outwards."""
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
        """Return the name of a table, normalized for comparison."""
        if not isinstance(node, exp.Identifier):
            return ""
        copy = exp.Identifier(this=node.this, quoted=node.args.get("quoted"))
        return str(self._dialect.normalize_identifier(copy).this)

    def _column_key(self, node: object) -> str:
        """Return the name of a column, normalized for comparison. MySQL only distinguishes case in names of tables."""
        if isinstance(node, exp.Identifier) and isinstance(self._dialect, MySQL):
            return str(node.this).lower()
        return self._key(node)


def _sources(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the sources that a SELECT, UPDATE, DELETE or MERGE reads directly, including those in parentheses."""
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
    """Return the alias of a source, else its name."""
    alias = source.args.get("alias")
    return alias.this if isinstance(alias, exp.TableAlias) else source.this
