"""`variants`: ways to equip the same agent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import ListNode, MapNode, Node, is_empty, kind_of, span_of
from agentv.extensions.agents.authoring.digests import FileDigests
from agentv.extensions.agents.authoring.parts import CopyReader
from agentv.extensions.agents.authoring.schema import AuthoredVariant
from agentv.model.suite.workspace import CopiedFiles, Variant


class VariantReader(Struct, frozen=True):
    """Reads the variants of a suite; what is wrong is reported."""

    digests: FileDigests
    template: CopiedFiles | None

    def read(self, node: Node | None, reading: Reading) -> tuple[Variant, ...]:
        """The variants in their order."""
        if node is None or is_empty(node):
            return ()
        if not isinstance(node, ListNode):
            reading.report.error("bad-value", node, f"'variants' must be a list, found {kind_of(node)}")
            return ()
        found = [one for item in node.items if (one := self._one(item, reading)) is not None]
        self._check(found, reading)
        return tuple(found)

    def _one(self, node: Node, reading: Reading) -> Variant | None:
        rendered = reading.rendered(node)
        if not isinstance(rendered, MapNode):
            if rendered is not None:
                message = f"an entry of 'variants' must be a mapping with 'name', found {kind_of(node)}"
                reading.report.error("bad-value", node, message)
            return None
        reading = reading.rendering(False)
        read = shape_of(AuthoredVariant).decode(rendered.items, rendered, reading, "a variant")
        if read is INVALID:
            return None
        overlay = rendered.items.get("overlay")
        copies = CopyReader(self.digests)
        overlays = () if overlay is None else copies.read(overlay, "overlay", reading)
        ref = None if read.ref is None else self._commit(read.ref, rendered.items["ref"], reading)
        facts = (read.name, [(one.path, one.sha256) for one in overlays], ref, sorted(read.env.items()))
        digest = hashlib.sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()
        return Variant(read.name.strip(), overlays, ref, dict(read.env), digest, span_of(rendered.at))

    def _commit(self, ref: str, node: Node, reading: Reading) -> str:
        found = commit_of(ref, reading)
        if found is None:
            message = f"this repository has no branch, tag or commit '{ref}'"
            reading.report.error("missing-ref", node, message)
        return found or ref

    def _check(self, variants: list[Variant], reading: Reading) -> None:
        """Report variants of one name, and those that change nothing."""
        seen: dict[str, Variant] = {}
        effects: dict[object, Variant] = {}
        for one in variants:
            first = seen.setdefault(one.name, one)
            if first is not one and first.span is not None:
                message = f"two variants are named '{one.name}'; the first is in line {first.span.line}"
                reading.report.error("duplicate-id", one.span, message)
                continue
            effect = (tuple((copied.path, copied.sha256) for copied in one.overlays), one.ref, tuple(one.env.items()))
            other = effects.setdefault(effect, one)
            if other is not one:
                message = f"the variant '{one.name}' is the same as '{other.name}'"
                reading.report.warning("no-effect", one.span, message)
            elif one.overlays and one.ref is None and not one.env and self._is_there(one.overlays):
                message = f"the variant '{one.name}' changes nothing: the template has the same files already"
                reading.report.warning("no-effect", one.span, message)

    def _is_there(self, overlays: tuple[CopiedFiles, ...]) -> bool:
        """Whether the template holds all of these files as they are."""
        if self.template is None:
            return False
        try:
            held: Mapping[str, str] = self.digests.of_places(self.template)
            added = {path: digest for one in overlays for path, digest in self.digests.of_places(one).items()}
        except OSError:
            return False
        return bool(added) and added.items() <= held.items()


def commit_of(ref: str, reading: Reading) -> str | None:
    """The commit that a ref names in the repository of the suite, or None."""
    from agentv.user_code.processes.processes import Finished  # few suites compare git refs
    from agentv.user_code.repositories.git import LIST_S, run_git

    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    found = run_git(asked, reading.places.root, reading.scope.env, LIST_S)
    if not isinstance(found, Finished) or found.status:
        return None
    return found.stdout.decode(errors="replace").strip() or None
