import pytest

from agentv.extensions.agents.adapters.acp_stream import decide
from agentv.extensions.agents.adapters.settings import PermissionRule
from agentv.extensions.agents.traces.acp import AcpCall


def edit(*paths):
    return AcpCall("1", named="Edit", kind="edit", locations=[{"path": one} for one in paths])


EDIT = edit("src/a.py")


@pytest.mark.parametrize(
    ("rule", "use", "applies"),
    [
        (PermissionRule("deny"), EDIT, True),
        (PermissionRule("deny", tool="Edit"), EDIT, True),
        (PermissionRule("deny", tool="shop.*"), EDIT, False),
        (PermissionRule("deny", tool="shop.*"), AcpCall("1", named="mcp__shop__refund"), True),
        (PermissionRule("deny", kind="execute"), EDIT, False),
        (PermissionRule("deny", path="src/**"), EDIT, True),
        (PermissionRule("deny", path="**/*.py"), edit("a.py"), True),
        (PermissionRule("deny", path="src/**"), edit(), False),
        (PermissionRule("deny", tool="edit", path="src/**", kind="read"), EDIT, False),
    ],
)
def test_a_rule_applies_where_all_of_its_conditions_hold(rule, use, applies, tmp_path):
    catch_all = PermissionRule("allow")
    shown = decide((rule, catch_all), use, str(tmp_path))
    assert shown == (not applies, "rule 1: deny" if applies else "rule 2: allow")


def test_no_rule_is_a_denial(tmp_path):
    assert decide((), EDIT, str(tmp_path)) == (False, "no rule applies")


def test_a_path_is_where_it_truly_leads(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "src").symlink_to("tests")
    rules = (PermissionRule("deny", path="tests/**"), PermissionRule("allow"))
    for path in ("src/a.py", "x/../tests/a.py", str(tmp_path / "tests" / "a.py")):
        assert decide(rules, edit(path), str(tmp_path))[0] is False
    allow = (PermissionRule("allow", path="src/*"),)
    assert decide(allow, edit("../outside"), str(tmp_path))[0] is False
