"""The dialect of promptfoo's configurations: whose file it is, and `agentv convert` of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentv.authoring.convert.dialects import Dialect, may_be_document
from agentv.authoring.source.nodes import ListNode, MapNode
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import UsageError
from agentv.extensions.promptfoo.configuration_file import NAMES, configuration_in

_IN_JAVASCRIPT = re.compile(r"promptfooconfig\.[cm]?[jt]s")
_EXPORT = "promptfoo export eval latest -o promptfoo.json"
_KEYS = ({"prompts", "providers"}, {"prompts", "targets"})
_OWN = frozenset({"prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "redteam"})
_OWN_ALONE = frozenset({"scenarios", "assertionTemplates", "redteam"})


class Promptfoo(Dialect):
    """promptfoo's configurations."""

    title = "a promptfoo configuration"

    def refuse(self, path: Path) -> None:
        """Refuse a configuration that is a program.

        Raises:
            UsageError: it is one; the hint says how to export it.
        """
        if _IN_JAVASCRIPT.fullmatch(path.name):
            message = f"{path} is a promptfoo configuration in JavaScript or TypeScript, which agentv does not read"
            raise UsageError(message, f"export it after a run ({_EXPORT}), then: agentv convert promptfoo.json")

    def claims(self, path: Path, data: bytes) -> bool:
        """Whether a file is a configuration: by its name, else by its keys, and tests that need no id."""
        if path.name in NAMES:
            return True
        by_name = "promptfoo" in path.name.lower() and not path.stem.endswith(".eval")
        if not by_name and not may_be_document(data):
            return False
        root = configuration_in(read_yaml(str(path.absolute()), data, Report()).value)
        if not isinstance(root, MapNode):
            return False
        if by_name and root.items.keys() & _OWN:
            return True
        if not any(wanted <= root.items.keys() for wanted in _KEYS):
            return False
        tests = root.get("tests")
        listed = tests.items if isinstance(tests, ListNode) else []
        nameless = (isinstance(one, MapNode) and not one.items.keys() & set(CASE.spelled("id")) for one in listed)
        return bool(root.items.keys() & _OWN_ALONE) or any(nameless)

    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write a configuration as an eval file beside it, and print what has no equivalent."""
        from agentv.extensions.promptfoo.converting import from_promptfoo
        from agentv.extensions.promptfoo.findings import report_converted

        allow_outside, to = options["allow_outside"], options["to"]
        if to not in (None, "yaml"):
            raise UsageError(f"a promptfoo configuration is converted to yaml, not to {to}")
        missing_empty = options["missing_vars"] == "empty"
        converted = from_promptfoo(source, options["out"], allow_outside=allow_outside, missing_empty=missing_empty)
        return report_converted(converted, allow_outside=allow_outside, as_json=options["as_json"])


PROMPTFOO = Promptfoo()
