"""Every assertion type has an example whose cases have the outcomes that they are named after; the site shows them."""

from pathlib import Path

from assertion_examples import Example, run_examples
from assertion_pages import SOURCE, anchors_of, index_page, type_pages

from agentv.app.registries import registries

ROOT = Path(__file__).parents[2]
EXPECTED = {"passes": "passed", "fails": "failed"}


def wrong_outcomes(example: Example) -> list[str]:
    """Return the outcomes that differ from the case names; an example that compares answers must give both verdicts."""
    found = [one.as_text() for one in example.outcomes if EXPECTED.get(one.case, one.status) != one.status]
    both = {one.status for one in example.outcomes} == {"passed", "failed"}
    return found if both else [*found, f"{example.file}: one case passes, and one fails"]


def test_every_type_has_an_example_that_passes_and_fails(tmp_path: Path) -> None:
    examples = run_examples(tmp_path / "run")
    assert set(examples) == set(registries().assertions)
    wrong = {name: found for name, example in examples.items() if (found := wrong_outcomes(example))}
    assert wrong == {}

    pages = dict(type_pages((ROOT / "docs" / SOURCE).read_text(encoding="utf-8"), examples))
    assert len(pages) == len(examples)
    assert "FAILED fails: score 0.00\n  failed: contains '30 days'" in pages["reference/assertions/contains.md"]


SECTIONS = """# Assertions

## All types

[`a`](#a), [`a:b`](#ab)

## Text

In common, see [elsewhere](../how-to/x.md) and [keys](diagnostics.md#no-key).

### a

Passes for a. See [b](#ab) and [types](#all-types).

```yaml
### not a heading
```

### a:b

Passes for b.

## Last
"""


def test_sections_become_pages_whose_links_lead_to_the_same_places(tmp_path: Path) -> None:
    file = tmp_path / "a.eval.yaml"
    file.write_text("tests: []\n")
    assert anchors_of(SECTIONS) == {"a": "a.md", "ab": "a-b.md"}

    index = index_page(SECTIONS)
    assert "[`a`](assertions/a.md), [`a:b`](assertions/a-b.md)" in index
    assert "- [`a`](assertions/a.md): Passes for a. See [b](assertions/a-b.md) and [types](#all-types)." in index
    assert "###" not in index

    example = Example("a", ROOT / "examples" / "assertions" / "text" / "contains.eval.yaml", ())
    pages = dict(type_pages(SECTIONS, {"a": example, "a:b": example}))
    page = pages["reference/assertions/a.md"]
    assert "See [b](a-b.md) and [types](../assertions.md#all-types)." in page
    assert "[elsewhere](../../how-to/x.md) and [keys](../diagnostics.md#no-key)" in page
    assert "### not a heading" in page
