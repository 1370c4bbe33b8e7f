import time

import pytest

from agentv.assertions.format import sql_access
from agentv.assertions.format.sql import DIALECTS, ContainsSql, IsSql, SqlRules, dialects
from agentv.registry import fields
from doubles.loading import codes_and_lines, outcome, repository
from doubles.nested_grading import graded


def sql(text, kind=IsSql, **rules):
    return graded(kind(SqlRules(**rules) if rules else None), text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "select a, count(*) from t where b = 'x;y' group by a;",
        "SELECT 1; SELECT 2;\n-- done",
        "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
        "INSERT INTO t (a) VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "CREATE TABLE t (a INT)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN a INT",
        "BEGIN; UPDATE t SET a = 1; COMMIT",
        "(SELECT 1) UNION (SELECT 2)",
        "SHOW TABLES",
        "GRANT SELECT ON a TO b",
    ],
)
def test_statements_are_sql(text):
    grade = sql(text)
    assert grade.passed, grade
    assert (grade.score, grade.error) == (1.0, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no statement"),
        ("-- a comment", "contains no statement"),
        ("hello", "statement 1 is an expression"),
        ("1 + 1", "an expression"),
        ("SELECT", "selects nothing"),
        ("SELECT * FORM users", "near 'users' at line 1, column 15"),
        ("SELECT a\nFROM t\nWHERE", "near 'WHERE' at line 3, column 1"),
        ("SELECT a,\nFROM t", "trailing comma at line 1, column 9"),
        ("SELECT 'abc", "Missing ', opened at line 1, column 8"),
        ("SELECT /* x", "unclosed comment or quotation"),
        ("I am sorry, I cannot do that.", "at line 1"),
        ("Sure! SELECT 1", "at line 1, column 5"),
        ("```sql\nSELECT 1\n```", "an expression"),
    ],
)
def test_what_is_no_sql_fails_with_the_parsers_words(text, said):
    grade = sql(text)
    assert (grade.passed, grade.error) == (False, None)
    assert said in grade.checks[0].evidence
    assert "sqlglot" not in grade.checks[0].evidence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Create a table in your kitchen", "only the first word of the statement, CREATE"),
        ("CALL p(1)", "first word of the statement, CALL"),
        ("SELECT " + "(" * 3000, "nested too deep"),
        ("SELECT " + "1," * 25_000 + "1", "the maximum is 50,000"),
    ],
)
def test_what_the_parser_cannot_check_is_no_verdict(text, said, capfd):
    grade = sql(text)
    assert grade.error.code == "sql-unchecked"
    assert said in grade.error.message
    assert graded(IsSql(), text).negated().error is not None
    assert capfd.readouterr().err == ""


def test_a_bug_of_the_parser_is_no_verdict(monkeypatch):
    def broken(*_arguments, **_options):
        raise IndexError("list index out of range")

    monkeypatch.setattr("sqlglot.parse", broken)
    grade = sql("SELECT 1")
    assert grade.error.code == "sql-unchecked"
    assert "IndexError" in grade.error.message


def test_other_names_lead_to_dialects():
    assert set(DIALECTS.values()) <= set(dialects())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM users",
        "SELECT * FROM USERS u JOIN shop.orders o ON o.id = u.id",
        "WITH secrets AS (SELECT 1) SELECT * FROM secrets",
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r, users",
        "DELETE u FROM users u",
        "UPDATE users SET a = 1; COMMIT",
    ],
)
def test_allowed_tables_may_be_touched(text):
    grade = sql(text, allowed_tables=("users", "shop.orders"))
    assert grade.passed, grade.checks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM secrets", "table secrets is not allowed"),
        ("SELECT * FROM users, x.users", "table x.users is not allowed"),
        ("SELECT (SELECT a FROM secrets) FROM users", "table secrets is not allowed"),
        ("SELECT * FROM users; DROP TABLE secrets", "table secrets is not allowed"),
        ("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", "table secrets is not allowed"),
        ("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b", "table a is not allowed"),
        ("SELECT * FROM (WITH s AS (SELECT 1) SELECT * FROM s) x, s", "table s is not allowed"),
        ("SHOW TABLES", "cannot tell what SHOW uses"),
    ],
)
def test_other_tables_fail_and_are_named(text, said):
    grade = sql(text, allowed_tables=("users", "shop.orders"))
    assert not grade.passed
    assert said in grade.checks[0].evidence


def test_aliases_do_not_hide_a_table():
    rules = {"allowed_columns": ("people.name",)}
    assert not sql("UPDATE secrets people2 SET people2.name = 1", **rules).passed
    assert not sql("SELECT people.name FROM secrets people", **rules).passed
    assert not sql("SELECT people.name FROM x.people", **rules).passed
    assert sql("UPDATE people p SET p.name = 1", **rules).passed


REACHES_SECRETS = [
    ("postgres", "SELECT * FROM users secrets, LATERAL (SELECT * FROM secrets) x"),
    ("postgres", "WITH a AS (DELETE FROM secrets RETURNING id) SELECT * FROM a"),
    ("postgres", "WITH RECURSIVE a AS (SELECT * FROM secrets UNION SELECT * FROM a) SELECT * FROM a"),
    ("postgres", 'WITH "Secrets" AS (SELECT 1) SELECT * FROM secrets'),
    ("postgres", "WITH secrets AS (SELECT 1) SELECT * FROM public.secrets"),
    ("snowflake", 'WITH "secrets" AS (SELECT 1) SELECT * FROM secrets'),
    ("mysql", "WITH Secrets AS (SELECT 1) SELECT * FROM secrets"),
    ("postgres", "MERGE INTO users USING (SELECT * FROM secrets) s ON users.id = s.id WHEN MATCHED THEN DELETE"),
    ("postgres", "UPDATE users SET id = 1 FROM secrets"),
    ("postgres", "DELETE FROM users USING secrets WHERE users.id = secrets.id"),
    ("postgres", "SELECT * FROM users UNION ALL (SELECT * FROM users EXCEPT SELECT * FROM secrets)"),
    ("postgres", "SELECT * FROM (secrets JOIN users ON true) AS j"),
    ("postgres", "CREATE TABLE users AS SELECT * FROM secrets"),
    ("postgres", "INSERT INTO users SELECT id FROM users WHERE id IN (WITH q AS (SELECT * FROM secrets) TABLE q)"),
    ("postgres", "TABLE secrets"),
]


@pytest.mark.parametrize(("dialect", "text"), REACHES_SECRETS)
def test_no_form_of_a_statement_hides_a_table(dialect, text):
    grade = sql(text, database_type=dialect, allowed_tables=("users",))
    assert not grade.passed
    assert "secrets is not allowed" in grade.checks[0].evidence


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", 'WITH "secrets" AS (SELECT 1) SELECT * FROM Secrets'),
        ("sqlite", "WITH Secrets AS (SELECT 1) SELECT * FROM secrets"),
        ("mysql", "WITH `Secrets` AS (SELECT 1) SELECT * FROM `Secrets`"),
        ("postgres", "WITH RECURSIVE b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b"),
        ("postgres", "WITH a AS (DELETE FROM users RETURNING id) SELECT * FROM a"),
        ("postgres", "WITH a AS (SELECT 1) INSERT INTO users SELECT * FROM a"),
        ("tsql", "UPDATE u SET id = 1 FROM users u"),
    ],
)
def test_names_of_the_statements_own_are_no_tables(dialect, text):
    grade = sql(text, database_type=dialect, allowed_tables=("users", "u"))
    assert grade.passed, grade.checks


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (SELECT ssn FROM (SELECT 1 AS a) z) FROM t",
        'SELECT (SELECT "SSN" FROM (SELECT 1 AS ssn) z) FROM t',
        "SELECT (SELECT y.a FROM (SELECT 1 AS ssn) z, (SELECT z.ssn AS a FROM u) y) FROM t z",
        "SELECT id AS ssn, row_number() OVER (ORDER BY ssn) FROM t",
        "SELECT id AS ssn, string_agg('a', ',' ORDER BY ssn) FROM t GROUP BY id",
        "SELECT id FROM t ORDER BY (SELECT 1 AS ssn FROM u WHERE ssn = 1)",
        "SELECT id FROM t JOIN u USING (ssn)",
        "SELECT id FROM t UNION SELECT ssn FROM u",
        "SELECT ssn FROM (SELECT id, id FROM t) z(k, v)",
        "SELECT x.a FROM t, LATERAL (SELECT t.ssn AS a FROM u) x",
        "UPDATE t SET id = z.q FROM (SELECT ssn AS q FROM u) z",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (ssn) DO NOTHING",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.ssn",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.ssn)",
        "WITH a AS (DELETE FROM t RETURNING ssn) SELECT ssn FROM a",
    ],
)
def test_no_form_of_a_statement_hides_a_column(text):
    grade = sql(text, database_type="postgres", allowed_columns=("id",))
    assert not grade.passed
    assert "ssn is not allowed" in grade.checks[0].evidence.lower()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t NATURAL JOIN u",
        "SELECT * FROM (t JOIN u ON true)",
        "SELECT * FROM (t JOIN u ON true) AS j",
        "DELETE FROM t WHERE id = 1 RETURNING *",
        "WITH a AS (DELETE FROM t RETURNING *) SELECT ssn FROM a",
    ],
)
def test_what_touches_all_columns_needs_all_columns(text):
    grade = sql(text, database_type="postgres", allowed_columns=("id",))
    assert "column * is not allowed" in grade.checks[0].evidence
    assert sql(text, database_type="postgres", allowed_columns=("id", "*")).passed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id AS n FROM t GROUP BY n HAVING n > 1 ORDER BY n",
        "SELECT id AS q FROM t UNION SELECT id FROM u ORDER BY q",
        "SELECT v FROM (SELECT id, id FROM t) z(k, v)",
        "SELECT a.k FROM (SELECT id AS k FROM t) a JOIN (SELECT id AS k FROM u) b USING (k)",
        "SELECT x.a FROM t, LATERAL (SELECT t.id AS a FROM u) x",
        "SELECT s.id FROM (t s JOIN u ON s.id = u.id)",
        "UPDATE t SET id = z.q FROM (SELECT id AS q FROM u) z",
        "MERGE INTO t USING (SELECT id AS k FROM u) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = s.k",
        "WITH a AS (DELETE FROM t RETURNING id AS k) SELECT k, a.k FROM a",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "SELECT (SELECT max(id) FROM u WHERE u.id = t.id) FROM t",
    ],
)
def test_columns_that_the_statement_makes_are_allowed(text):
    grade = sql(text, database_type="postgres", allowed_columns=("id",))
    assert grade.passed, grade.checks


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(f"t.c{place}" for place in range(4000)) + " FROM t",
        "SELECT 1 FROM " + ", ".join(f"t{place}" for place in range(6000)),
        "SELECT " + ", ".join("+".join(["a"] * 200) for _ in range(100)) + " FROM t",
    ],
    ids=["many columns", "many tables", "many sums"],
)
def test_long_statements_are_looked_through_in_time(text):
    started = time.process_time()
    assert not sql(text, allowed_tables=("x",), allowed_columns=("x",)).passed
    assert time.process_time() - started < 8


def test_endless_sums_are_no_verdict_where_columns_are_looked_at():
    endless = "SELECT " + "+".join(["a"] * 2000)
    assert sql(endless).passed
    assert sql(endless, allowed_columns=("a",)).error.code == "sql-unchecked"


def test_a_pattern_that_takes_too_long_is_no_verdict(monkeypatch):
    monkeypatch.setattr(sql_access, "TIMEOUT_S", 0.05)
    grade = sql(f"SELECT 1 FROM {'a' * 40}b", allowed_tables=("select::null::(a|a|aa)+",))
    assert grade.error.code == "sql-unchecked"
    assert "takes too long" in grade.error.message


def test_the_form_of_promptfoo_says_what_may_be_done():
    rules = {"allowed_tables": ("(select|update)::null::users", "insert::shop::.*")}
    assert sql("SELECT a FROM users; UPDATE users SET a = 1", **rules).passed
    assert not sql("DELETE FROM users", **rules).passed
    assert sql("INSERT INTO shop.orders (a) SELECT b FROM users", **rules).passed
    assert not sql("SELECT * FROM shop.orders", **rules).passed
    assert sql("SELECT id FROM t", allowed_columns=("select::null::id",)).passed
    assert not sql("UPDATE t SET id = 1", allowed_columns=("select::null::id",)).passed
    assert sql("SELECT * FROM t", allowed_columns=("select::null::(.*)",)).passed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t",
        "SELECT COUNT(*) FROM t WHERE ID = 1",
        "WITH z AS (SELECT id AS q FROM t) SELECT z.*, z.q FROM z",
        "INSERT INTO t (id) VALUES (1)",
    ],
)
def test_allowed_columns_may_be_touched(text):
    grade = sql(text, allowed_columns=("id", "people.name"))
    assert grade.passed, grade.checks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT id, ssn FROM t", "column ssn"),
        ("SELECT * FROM t", "column *"),
        ("SELECT id FROM t WHERE ssn = 1", "column ssn"),
        ("SELECT z.q FROM (SELECT ssn AS q FROM t) z", "column ssn"),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s WHERE t.ssn = s.id)", "column t.ssn"),
        ("INSERT INTO t (id, ssn) VALUES (1, 2)", "column t.ssn"),
        ("INSERT INTO t VALUES (1)", "column t.*"),
        ("UPDATE t SET ssn = 1", "column ssn"),
        ("ALTER TABLE t ADD COLUMN ssn INT", "column t.ssn"),
        ("CREATE TABLE t (ssn INT)", "column t.ssn"),
    ],
)
def test_other_columns_fail_and_are_named(text, said):
    grade = sql(text, allowed_columns=("id", "people.name"))
    assert not grade.passed
    assert f"{said} is not allowed" in grade.checks[0].evidence


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "Use this:\n\n```sql\nSELECT 1;\n```\nDone.",
        "```\nhello\n```\n~~~sql\nSELECT 1\n~~~",
        "- a\n  ```sql\n  SELECT 1\n  ```",
    ],
)
def test_a_code_block_or_the_whole_answer_is_contained_sql(text):
    assert sql(text, ContainsSql).passed


def test_a_block_that_cannot_be_checked_is_no_verdict_unless_another_passes():
    unchecked = "```sql\nCALL p(1)\n```\n"
    assert sql(unchecked, ContainsSql).error.code == "sql-unchecked"
    assert sql(unchecked + "```sql\nSELECT 1\n```\n", ContainsSql).passed


def test_more_code_than_is_read_is_no_verdict():
    block = "```sql\nhello " + "x" * 40_000 + "\n```\n"
    assert sql(block * 7, ContainsSql).error.code == "sql-unchecked"
    assert sql(block + "```\nSELECT 1\n```\n" + block * 7, ContainsSql).passed


ONE_OF_EACH = """\
target: echo
tests:
  - id: a
    input: a
    assert:
      - type: is-sql
      - contains-sql: {database_type: nonsense}
      - type: is-xml
      - rouge-n: a
      - not-bleu: a
      - gleu: a
"""


def test_a_file_that_needs_a_missing_library_does_not_load(tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "_is_installed", lambda module: False)
    assert codes_and_lines(tmp_path, ONE_OF_EACH) == [("missing-extra", line) for line in (6, 7, 9, 10)]


@pytest.mark.parametrize("place", ["", "default_test:\n  "])
def test_where_nothing_runs_a_missing_library_is_a_warning(tmp_path, monkeypatch, place):
    monkeypatch.setattr(fields, "_is_installed", lambda module: False)
    suite = f"target: echo\n{place}assert: [{{contains-sql: {{allowed_tables: [a]}}}}]\ntests: [{{id: a, input: a}}]\n"
    path = repository(tmp_path, {"suite.eval.yaml": suite}) / "suite.eval.yaml"
    found, diagnostics = outcome(path, for_run=False)
    assert found is not None
    assert [(one.code, one.severity) for one in diagnostics] == [("missing-extra", "warning")]
