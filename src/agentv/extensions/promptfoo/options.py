"""Options of `agentv convert` for promptfoo's configurations."""

from __future__ import annotations

from functools import partial

import click

from agentv.cli.convert import DialectOption

_of_promptfoo = partial(DialectOption, dialects=("promptfoo",), files="promptfoo configurations")

MISSING_VARS = _of_promptfoo(
    "--missing-vars",
    type=click.Choice(["error", "empty"]),
    default="error",
    help="For a promptfoo configuration: treat variables that a test does not set as errors or as empty text.",
)

JSON = _of_promptfoo(
    "--json", "as_json", is_flag=True, help="For a promptfoo configuration: print the findings as JSON."
)
