from __future__ import annotations

from agentv.authoring.convert.agentv.dropped import names_in, without_key
from agentv.errors import Diagnostic


def test_the_keys_that_a_diagnostic_names() -> None:
    several = Diagnostic("no-effect", "'$schema', 'dashboard' have no effect in agentv", severity="hint")
    assert names_in(several) == ["$schema", "dashboard"]
    beside = Diagnostic("no-effect", "'env' has no effect beside 'use_target'", severity="hint")
    assert names_in(beside) == ["env"]
    assert names_in(Diagnostic("older-spelling", "'a' has no effect")) == []


def test_every_place_of_a_key_is_taken_out_in_turn() -> None:
    text = "# top\n$schema: x\ntargets:\n  - name: a # one\n    verbose: true\n  - {name: b, verbose: false, z: 1}\n"
    assert list(without_key(text, "$schema")) == [text.replace("$schema: x\n", "")]
    assert list(without_key(text, "verbose")) == [
        text.replace("    verbose: true\n", ""),
        text.replace("verbose: false, ", ""),
    ]
    assert list(without_key(text, "bose")) == []


def test_a_block_goes_with_all_that_is_in_it() -> None:
    text = "dashboard:\n  # how\n  theme: dark\n\n  tabs:\n  - a\n# of results\nresults: x\n"
    assert list(without_key(text, "dashboard")) == ["# of results\nresults: x\n"]
