import re
import subprocess
import sys
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest

from agentv.assertions.catalogue import NOT_YET, TYPES, registry
from agentv.registry.fields import Doc, options_of

FAMILIES = (
    "text", "similarity", "format", "xml_text", "html_text", "sql", "data", "cost", "structure", "tool_calls",
    "trajectory", "embeddings",
)  # fmt: skip
OURS = [name for name, place in TYPES.items() if place.split(":")[0].rpartition(".")[2] in FAMILIES]
OURS += ["javascript", "webhook"]


@pytest.mark.parametrize("name", OURS)
def test_every_option_is_documented(name):
    options = registry().find(name).options
    hints = get_type_hints(options, include_extras=True)
    for option in options_of(options):
        assert get_origin(hints[option]) is Annotated, option
        assert any(isinstance(marker, Doc) and marker.text for marker in get_args(hints[option])), option


def test_names_are_kebab_case_and_either_built_or_not_yet():
    for name in (*TYPES, *NOT_YET):
        assert re.fullmatch(r"(?!not-)[a-z][a-z0-9]*([:-][a-z0-9]+)*", name), name
    assert not TYPES.keys() & NOT_YET


IMPORTED = """
import sys
from agentv.assertions.catalogue import TYPES, registry
found = registry()
assert "agentv.assertions.text.matching" not in sys.modules
for name in TYPES:
    found.find(name)
from agentv.model.run.context import AssertionContext
found.find("contains").options("a").grade(AssertionContext(input=(), output="abc"))
heavy = {"regex", "rapidfuzz", "jsonschema", "sqlglot", "sacrebleu", "rouge_score", "nltk", "lxml", "aiohttp"}
print(sorted(heavy & sys.modules.keys()))
"""


def test_nothing_heavy_is_imported_before_it_is_needed():
    ran = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
