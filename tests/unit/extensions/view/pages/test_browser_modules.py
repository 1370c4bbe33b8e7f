"""The modules of the pages, which are joined into one script: names are their own, and all of them are used."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agentv.extensions.view.pages.page import START, joined, module_sources
from agentv.extensions.view.static import ENTRIES

DECLARED = re.compile(r"^(?:async function|function\*?|const|let|class) ([\w$]+)", re.MULTILINE)
OTHER_FORMS = re.compile(r"^(?:import\b|export\b|var\b|(?:const|let) [^\w$]).*", re.MULTILINE)


@pytest.mark.parametrize("entry", [START, *ENTRIES])
def test_a_script_declares_each_name_once_and_has_no_other_imports_and_exports(entry):
    script = joined(entry)
    assert [name for name, count in Counter(DECLARED.findall(script)).items() if count > 1] == []
    assert OTHER_FORMS.findall(script) == []


def test_imports_keep_their_names_and_come_before_what_needs_them():
    sources = module_sources()
    assert [path for path, text in sources.items() if re.search(r"^import \{[^}]* as ", text, re.MULTILINE)] == []
    script = joined("data/numbers.js"), joined("run/overview.js")
    assert script[1].index(script[0].splitlines()[0]) < script[1].index(sources["run/overview.js"].splitlines()[-2])


def test_all_modules_are_part_of_a_page():
    pages = "".join(joined(entry) for entry in (START, *ENTRIES))
    assert [path for path, source in module_sources().items() if source.splitlines()[0] not in pages] == []
