"""Recognizes promptfoo's configurations and translates them to eval files."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from agentv.authoring.dialects.recognition import DocumentDialect, Surroundings, Translation
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.spellings import CASE
from agentv.authoring.loading.load import COLLECTED
from agentv.authoring.source.nodes import ListNode, MapNode, Node, kind_of
from agentv.errors import UsageError
from agentv.extensions.promptfoo import SIGNS

_IN_JAVASCRIPT = re.compile(r"promptfooconfig\.[cm]?[jt]s")
_EXPORT = "promptfoo export eval latest -o promptfoo.json"
_KEYS = [set(sign.removeprefix("keys:").split("+")) for sign in SIGNS if sign.startswith("keys:")]
_PROMPTFOO_KEYS = frozenset({"prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "redteam"})
_DISTINCTIVE_KEYS = frozenset({"scenarios", "assertionTemplates", "redteam"})


class Promptfoo(DocumentDialect):
    """The dialect of promptfoo's configurations."""

    title = "a promptfoo configuration"

    def refuse(self, path: Path) -> None:
        """Raise if the configuration is a JavaScript or TypeScript file.

        Raises:
            UsageError: it is one; the hint says how to export it.
        """
        if _IN_JAVASCRIPT.fullmatch(path.name):
            message = f"{path} is a promptfoo configuration in JavaScript or TypeScript, which agentv does not read"
            raise UsageError(message, f"export it after a run ({_EXPORT}), then: agentv eval promptfoo.json")

    def claims(self, path: str, root: Node, data: bytes) -> bool:  # noqa: ARG002  # the name and the keys suffice
        """Whether a file is a configuration, by its name, or by its keys and tests without ids."""
        file = Path(path)
        if f"name:{file.name}" in SIGNS:
            return True
        found = configuration_in(root)
        if not isinstance(found, MapNode):
            return False
        if any(fnmatchcase(file.name, pattern) for pattern in COLLECTED):
            return False
        if "promptfoo" in file.name.lower() and found.items.keys() & _PROMPTFOO_KEYS:
            return True
        if not any(wanted <= found.items.keys() for wanted in _KEYS):
            return False
        tests = found.get("tests")
        listed = tests.items if isinstance(tests, ListNode) else []
        nameless = (isinstance(one, MapNode) and not one.items.keys() & set(CASE.spelled("id")) for one in listed)
        return found is not root or bool(found.items.keys() & _DISTINCTIVE_KEYS) or any(nameless)

    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The configuration translated to an eval file, or None if it is not a mapping, which is reported."""
        from agentv.extensions.promptfoo.configuration import eval_file
        from agentv.extensions.promptfoo.source import Source, mapping

        found = configuration_in(root)
        if not isinstance(found, MapNode):
            reading.report.error("bad-eval-file", root, f"{self.title} is a mapping, found {kind_of(root)}")
            return None
        source = Source(Path(path).parent, reading, calls=around.calls)
        made = eval_file(Path(path), found, source)
        unseen = frozenset({"tests"}) if source.uncalled else frozenset()
        return Translation(mapping(found, made), unseen, own_paths=True)


def configuration_in(root: Node) -> Node:
    """The configuration in a results file (of `promptfoo export eval` or `eval -o`), or else the document itself."""
    held = root.get("config") if isinstance(root, MapNode) and "results" in root.items else None
    return held if isinstance(held, MapNode) and "prompts" in held.items else root


PROMPTFOO = Promptfoo()
