import time

import pytest

from agentv.assertions.format import markup
from agentv.assertions.format.markup import ContainsHtml, ContainsXml, IsHtml, IsXml, XmlRules
from doubles.nested_grading import graded

ORDER = (
    '<?xml version="1.0" encoding="latin-1"?>\n<order id="1"><item><price>3</price></item><!-- <x> --><note/></order>'
)
BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">]>
<lolz>&lol2;</lolz>"""
FILE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
REMOTE = '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a>text</a>'


@pytest.mark.parametrize(
    "text", [ORDER, f"\n  {ORDER}\n", "<a/>", "<a>ø & </a>".replace("&", "&amp;"), REMOTE, "<a:b/>"]
)
def test_well_formed_documents_are_xml(text):
    assert graded(IsXml(), text).passed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no element found at line 1, column 1"),
        ("<a>\n  <b>\n</a>", "mismatched tag at line 3, column 3"),
        ("<a>ørsted & co</a>", "not well-formed (invalid token) at line 1, column 11"),
        ("<a/><b/>", "junk after document element at line 1, column 5"),
        ("```xml\n<a/>\n```", "at line 1, column 1"),
        ("<a>&undefined;</a>", "undefined entity"),
        ("<a>\ud800</a>", "surrogate"),
        ("<a>\x01</a>", "not well-formed"),
    ],
)
def test_what_is_no_xml_fails_with_line_and_column(text, said):
    grade = graded(IsXml(), text)
    assert (grade.passed, grade.error) == (False, None)
    assert said in grade.checks[0].evidence


@pytest.mark.parametrize("text", [BOMB, FILE])
def test_declared_entities_are_refused_and_nothing_is_read(text):
    grade = graded(IsXml(), text)
    assert grade.error.code == "xml-entities"
    assert "root:" not in grade.error.message


@pytest.mark.parametrize(
    "value",
    [
        "order.item.price",
        "order.item, order.note",
        ("order", "order.item.price"),
        XmlRules(("order.item",)),
        XmlRules("order.note"),
    ],
)
def test_required_elements_are_found_by_their_paths(value):
    assert graded(IsXml(value), ORDER).passed
    assert graded(ContainsXml(value), f"Here: {ORDER} done").passed


@pytest.mark.parametrize("value", ["item", "order.price", ("order", "order.x"), XmlRules(("order.item.note",))])
def test_a_missing_element_fails_and_is_named(value):
    for kind, text in ((IsXml, ORDER), (ContainsXml, f"Here: {ORDER}")):
        grade = graded(kind(value), text)
        assert not grade.passed
        assert "no element" in grade.checks[0].evidence


@pytest.mark.parametrize("text", [
    "see <a>b</a>.", "<br/>", "```xml\n<a><b/></a>\n```", "<a><b>c</b>", "<a>x & <b>y</b></a>", "a < b <c>d</c>",
    "</z><a></a>",
])  # fmt: skip
def test_a_fragment_anywhere_is_enough(text):
    assert graded(ContainsXml(), text).passed


@pytest.mark.parametrize("text", [
    "", "hello", "a < b and c > d", "List<String> x", "<a>", "</a>", "<a></b>", "<!-- <a/> -->", "<![CDATA[<a/>]]>",
    "<a b=1></a>",
])  # fmt: skip
def test_no_fragment_is_no_xml(text):
    grade = graded(ContainsXml(), text)
    assert (grade.passed, grade.error) == (False, None)


def test_more_fragments_than_are_read_is_no_verdict():
    assert graded(ContainsXml("b"), "<a/>" * 10_001).error.code == "xml-limit"
    assert not graded(ContainsXml("b"), "<a/>" * 10_000).passed


PAGE = """<!DOCTYPE html>
<!-- a page -->
<html lang=en><head><title>a < b</title><script>if (a < b) document.write("</p>")</script></head>
<body><p>One<p>Two<ul><li>a<li>b</ul><br><img src="x>y"><my-element>x</my-element>
<svg viewBox="0 0 1 1"><circle r="1"/><linearGradient></linearGradient></svg></body></html>
"""


@pytest.mark.parametrize(
    "text",
    [PAGE, "<div>a</div>", "<h1>A</h1>\n\n<p>b", "<br>", "<DIV>a</div>", "<table><tr><td>1</table>", "<p>a &lt; b</p>"],
)
def test_pages_and_elements_are_html(text):
    grade = graded(IsHtml(), text)
    assert grade.passed, grade.checks
    assert graded(ContainsHtml(), text).passed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no HTML element"),
        ("hello", "text outside all elements at line 1, column 1"),
        ("<!DOCTYPE html>", "contains no HTML element"),
        ("Here it is:\n<p>a</p>", "text outside all elements at line 1, column 1"),
        ("<p>a</p>\n\n  done", "text outside all elements at line 3, column 3"),
        ("<div>a", "<div> at line 1, column 1 is not closed"),
        ("<div><b>a</div></b>", "<b> at line 1, column 6 is not closed"),
        ("<div>a</div></div>", "</div> at line 1, column 13 closes no element"),
        ("<p>a</br>", "</br> at line 1, column 5 closes no element"),
        ("<order>a</order>", "<order> at line 1, column 1 is not an HTML element"),
        ('<?xml version="1.0"?><p>a</p>', "XML at line 1, column 1"),
        ("<div><!-- never ends</div>", "unclosed comment at line 1, column 6"),
        ("<!DOCTYPE svg><svg></svg>", "> is not an HTML doctype"),
    ],
)
def test_what_is_no_html_says_where(text, said):
    grade = graded(IsHtml(), text)
    assert (grade.passed, grade.error) == (False, None)
    assert said in grade.checks[0].evidence


@pytest.mark.parametrize(
    "text",
    ["say <b>hi</b>", "a<br>b", "```html\n<p>a</p>\n```", "<!doctype HTML>", "x <img src='a'/> y", "<div><b>a</div>"],
)
def test_one_whole_element_is_contained_html(text):
    assert graded(ContainsHtml(), text).passed


@pytest.mark.parametrize("text", [
    "", "hello", "a < b > c", "<example>", "<order>a</order>", "Press <b> now", "</p>", "&amp;", "<!-- x -->",
    "Map<K, V>", "<p",
])  # fmt: skip
def test_no_whole_element_is_no_html(text):
    assert not graded(ContainsHtml(), text).passed


HOSTILE = [
    "<", "<a ", "<a '", '<a "', "<!--", "<a x='\"", "</a", "<a><b>", "</a></b>", "<script>", "<!doctype ", "<?",
    "<p>", "<div>", "a b",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_read_in_linear_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    for kind in (IsHtml, ContainsHtml, ContainsXml, IsXml):
        graded(kind(), text)
    assert time.process_time() - started < 8


@pytest.mark.parametrize("assertion", [IsHtml(), ContainsHtml(), ContainsXml()], ids=lambda one: type(one).__name__)
def test_more_tags_than_are_read_are_no_verdict(assertion, monkeypatch):
    monkeypatch.setattr(markup, "MOST_TAGS", 100)
    assert graded(assertion, "<a>" * 101).error.code in {"too-long", "xml-limit"}
    assert graded(assertion, "<a>" * 100).error is None
