"""Names of tools."""

import pytest

from agentv.model.values.tool_names import KNOWN_AGENTS, TOOLS, canonical_name, mcp_name, names_of_call


@pytest.mark.parametrize(
    "native", ["mcp__shop__get_order", "mcp_shop_get_order", "mcp__shop.get_order", "shop.get_order"]
)
def test_all_forms_of_an_mcp_tool_have_one_name(native):
    assert canonical_name(native) == "shop.get_order"


@pytest.mark.parametrize(
    "native", ["mcp__", "mcp__shop", "mcp__shop__", "mcp____get", "mcp_", "mcp_x", "", "mcp", "get_order"]
)
def test_what_is_no_mcp_tool_keeps_its_name(native):
    assert mcp_name(native) == native


def test_no_native_name_has_two_canonical_names():
    assert set().union(*TOOLS.values()) == set(KNOWN_AGENTS)
    natives = [native for agents in TOOLS.values() for native in {one for ones in agents.values() for one in ones}]
    assert sorted(natives) == sorted(set(natives))


PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"
HEREDOC = f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"


@pytest.mark.parametrize(
    ("native", "arguments", "names"),
    [
        ("exec_command", {"cmd": HEREDOC}, ("edit", "apply_patch")),
        ("shell", {"command": ["bash", "-lc", HEREDOC]}, ("edit", "apply_patch")),
        ("shell", {"command": ["bash", "-lc", f"cd src && {HEREDOC}"]}, ("edit", "apply_patch")),
        ("shell", {"command": ["apply_patch", PATCH]}, ("edit", "apply_patch")),
        ("shell", {"command": ["bash", "-lc", f"{HEREDOC}pytest"]}, ("shell", "shell")),
        ("shell", {"command": f"rm -r x; {HEREDOC}"}, ("shell", "shell")),
        ("my_tool", {"command": HEREDOC}, ("my_tool", "my_tool")),
    ],
)
def test_a_command_that_only_feeds_a_patch_is_an_edit(native, arguments, names):
    assert names_of_call(native, arguments) == names
