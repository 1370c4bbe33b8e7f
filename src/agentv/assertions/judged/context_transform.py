"""Checks of a `context_transform` before the first call: names that nothing has."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.suite.assertion import Transform
from agentv.model.values.values import JsonObject, lazy_pattern
from agentv.registry.fields import Issue
from agentv.templating import GLOBAL_NAMES, undeclared

TRANSFORM_NAMES = ("context", "metadata", "output", "json", "vars", "env")
"""Names that an expression over a reply can use, besides the variables of the case."""

_OPTIONAL = lazy_pattern(r"\bis\s+(?:not\s+)?(?:un)?defined\b|\|\s*(?:default|d)\b")
_KEY_OF_CONTEXT = lazy_pattern(r"(?<![\w.])context\.(?P<key>[A-Za-z_]\w*)(?P<rest>[\w.]*)(?!\s*\()")
_KEY_OF_VARS = lazy_pattern(r"(?<![\w.])vars\.(?P<key>[A-Za-z_]\w*)")
_MISSPELT = 0.6
"""Share of letters in place from which a name is a misspelt one."""

_OPTION = ("context_transform",)
_PLACE = "'context_transform'"


def transform_issues(transform: Transform, variables: JsonObject) -> Iterator[Issue]:
    """Names that an expression reads and that neither the reply nor the case can have.

    Args:
        transform: of the entry; only expressions are checked.
        variables: of the case.
    """
    expression = transform.expression
    if transform.kind != "jinja" or _OPTIONAL.search(expression):
        return
    known = {*TRANSFORM_NAMES, *GLOBAL_NAMES, *variables}
    for name in sorted(undeclared(f"{{{{ {expression} }}}}") - known):
        yield Issue(_OPTION, f"{_PLACE}: '{name}' is not defined", "undefined-variable", _hint(name, variables))
    key = _KEY_OF_VARS.search(expression)
    if key is not None and key["key"] not in variables and "vars" not in variables:
        message = f"{_PLACE}: the case has no variable '{key['key']}'"
        yield Issue(_OPTION, message, "undefined-variable", _known(variables))
    found = _KEY_OF_CONTEXT.search(expression)
    if found is not None and "context" not in variables:
        yield _key_of_list(found["key"], found["rest"])


def _key_of_list(key: str, rest: str) -> Issue:
    """What to say of a key of the retrieved texts, which are a list; promptfoo's `context` is an object."""
    message = f"{_PLACE}: 'context' is the list of retrieved texts, which has no '{key}'"
    if key in ("metadata", "vars"):
        return Issue(_OPTION, message, "undefined-variable", f"write {key}{rest}, without 'context.'")
    return Issue(_OPTION, message, "undefined-variable", f"write context[0].{key}, or metadata.{key}")


def _hint(name: str, variables: JsonObject) -> str:
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    names = (*TRANSFORM_NAMES, *variables)
    found = extractOne(name, names, scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=_MISSPELT)
    return f"did you mean '{found[0]}'?" if found is not None else _known(variables)


def _known(variables: JsonObject) -> str:
    names = [*TRANSFORM_NAMES[:4], *list(variables)[:8]]
    return f"available: {', '.join(names)}"
