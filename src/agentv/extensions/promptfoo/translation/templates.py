"""Nunjucks templates of promptfoo as Jinja templates."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentv.extensions.promptfoo.translation.tables import FILTERS
from agentv.templating import RenderError, undeclared

COMMENT = "{#"
"""What starts a comment in Nunjucks."""

_PARTS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_FILTER = re.compile(r"\|\s*(\w+)")
_SCRIPT = re.compile(r"===|!==|&&|\|\||\?[^}]*:|\.\w+\(|\br/")
_TAG = re.compile(r"\{%-?\s*(asyncEach|asyncAll|ifAsync|switch|case)\b")
_LENGTH = re.compile(r"(?<=[\w\])])\.length\b(?!\()")
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_SHOWN = re.compile(r"\{\{(-?)\s*([A-Za-z_]\w*)((?:\.\w+|\[[^\]]*\])*)\s*(\|[^}]*?)?\s*(-?)\}\}")
_CONDITION = re.compile(r"(\{%-?\s*(?:el)?if\s+(?:not\s+)?)([A-Za-z_]\w*)(\s*-?%\})")
_LOOP = re.compile(r"(\{%-?\s*for\s+\w+(?:\s*,\s*\w+)?\s+in\s+)([A-Za-z_]\w*)(\s*-?%\})")
_LOCAL = re.compile(r"\{%-?\s*(?:for\s+(\w+)(?:\s*,\s*(\w+))?\s+in|set\s+(\w+))")
_REACHABLE = frozenset({"env", "loop", "output", "rubric", "vars"})

Tell = Callable[..., None]
"""Called with a message and a hint."""


def converted_template(text: str, always_set: frozenset[str] | None) -> str:
    """The template with what is spelled otherwise in Jinja, and with defaults for variables that tests may not set.

    Args:
        text: the template.
        always_set: variables that every test sets; None: no defaults.
    """
    text = _PARTS.sub(lambda found: _respelled(found[0]), _COMMENT.sub("", text))
    if always_set is None:
        return text
    local = {name for found in _LOCAL.findall(text) for name in found if name}
    known = always_set | local | _REACHABLE
    text = _SHOWN.sub(lambda found: found[0] if found[2] in known else _shown(found), text)
    text = _CONDITION.sub(lambda found: _with(found, "''", known), text)
    return _LOOP.sub(lambda found: _with(found, "[]", known), text)


def _respelled(part: str) -> str:
    """`elseif`, `.length`, `null` outside of texts."""
    pieces = _TEXTS.split(part)
    texts = [*_TEXTS.findall(part), ""]
    return "".join(f"{_jinja(piece)}{text}" for piece, text in zip(pieces, texts, strict=True))


def _jinja(piece: str) -> str:
    piece = re.sub(r"^(\{%-?\s*)else\s?if\b", r"\1elif", piece)
    piece = re.sub(r"===|!==", lambda found: found[0][:2], piece)
    return _LENGTH.sub(" | length", piece) if _LENGTH.search(piece) and "." in piece else piece


def _shown(found: re.Match[str]) -> str:
    before, name, path, filters, after = found.groups(default="")
    if re.match(r"\|\s*default\b", filters):
        return found[0]
    value = f"({name} | default({{}})){path}" if path else name
    rest = f" {filters.strip()}" if filters else ""
    return f"{{{{{before} {value} | default(''){rest} {after}}}}}"


def _with(found: re.Match[str], default: str, known: frozenset[str]) -> str:
    start, name, end = found.groups()
    return found[0] if name in known else f"{start}{name} | default({default}){end}"


def check_template(text: str, tell: Tell) -> None:
    """Report what Jinja reads in another way.

    Args:
        text: the template.
        tell: called for each finding.
    """
    convertible = True
    if COMMENT in text:
        convertible = False
        tell("'{#' starts a comment in Nunjucks, but is plain text in agentv", "remove the comment")
    for part in _PARTS.findall(text):
        bare = _TEXTS.sub("''", part)
        tag = _TAG.match(part)
        foreign = next((name for name in _FILTER.findall(bare) if name in FILTERS), None)
        script = _SCRIPT.search(bare)
        if tag is not None:
            tell(f"'{{% {tag[1]} %}}' is a Nunjucks tag; agentv uses Jinja templates")
        elif foreign is not None:
            tell(f"the filter '{foreign}' exists only in Nunjucks", f"write '{FILTERS[foreign]}', Jinja's")
        elif script:
            tell(f"'{part}' contains JavaScript; agentv uses Jinja templates", "rewrite it in Jinja")
        convertible = convertible and not (tag or foreign or script)
    if not convertible:
        return
    try:
        undeclared(text)
    except RenderError as error:
        tell(f"this is not a valid Jinja template: {error.message}")
