from __future__ import annotations

import pytest

from agentv.extensions.view.pages.browser_modules import ModuleError, joined, module_sources
from agentv.extensions.view.pages.page import START
from agentv.extensions.view.static import ENTRIES

ONE = "// One.\n\nexport const ONE = 1;\n\nexport function one() {\n  return ONE;\n}\n"
START_OF_ONE = 'import {\n  ONE,\n  one,\n} from "./data/one.js";\n\nconst again = one;\nagain(ONE);\n'


def test_modules_are_joined_after_those_that_they_need():
    assert joined("start.js", {"start.js": START_OF_ONE, "data/one.js": ONE, "other.js": "export const x = 1;\n"}) == (
        "// One.\n\nconst ONE = 1;\n\nfunction one() {\n  return ONE;\n}\n\nconst again = one;\nagain(ONE);\n".replace(
            "}\n\nconst", "}\nconst"
        )
    )


def test_a_module_that_two_need_is_there_once():
    sources = {
        "a.js": 'import { b } from "./b.js";\nimport { c } from "./c.js";\nb(c);\n',
        "b.js": 'import { c } from "./c.js";\nexport function b() {\n  return c;\n}\n',
        "c.js": "export const c = 1;\n",
    }
    assert joined("a.js", sources).count("const c = 1;") == 1


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"a.js": 'import { b } from "./b.js";\nb();\n'}, "a.js imports b.js, which does not exist"),
        (
            {"a.js": 'import { b } from "./b.js";\n', "b.js": "const b = 1;\n"},
            "a.js imports b, which b.js does not export",
        ),
        (
            {
                "a.js": 'import { b } from "./b.js";\nexport const a = b;\n',
                "b.js": 'import { a } from "./a.js";\nexport const b = a;\n',
            },
            "modules need each other: a.js → b.js → a.js",
        ),
        (
            {
                "a.js": 'import { b } from "./b.js";\nconst one = b;\n',
                "b.js": "export const b = 1;\nfunction one() {}\n",
            },
            "one is declared in b.js and in a.js",
        ),
        ({"a.js": "const one = 1;\nfunction one() {}\n"}, "a.js declares one twice"),
    ],
)
def test_modules_that_cannot_be_joined_are_named(sources, said):
    with pytest.raises(ModuleError, match="^" + said.replace("(", r"\(") + "$"):
        joined("a.js", sources)


@pytest.mark.parametrize(
    "line",
    [
        'import * as all from "./b.js";',
        'import b from "./b.js";',
        'import { b as c } from "./b.js";',
        'import "./b.js";',
        'import { b } from "library";',
        "import { b } from './b.js';",
        "export default 1;",
        "export { a };",
        'export * from "./b.js";',
        "export let { a } = b;",
        "var a = 1;",
        "const { a } = b;",
        'import { a } from "./b.js";\nimport { b } from "./b.js";',
    ],
)
def test_other_forms_of_imports_and_exports_are_refused(line):
    with pytest.raises(ModuleError, match=r"^a\.js: "):
        joined("a.js", {"a.js": line + "\n", "b.js": "export const b = 1;\n"})


def test_all_modules_are_part_of_a_page():
    sources = module_sources()
    pages = "".join(joined(entry, sources) for entry in (START, *ENTRIES))
    assert "export " not in pages
    assert [path for path, source in sources.items() if source.splitlines()[0] not in pages] == []
