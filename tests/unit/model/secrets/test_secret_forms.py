"""Which values count as secrets, and how they read encoded."""

from __future__ import annotations

import html
import json
from base64 import a85encode, b32encode, b64encode, b85encode

import pytest

from agentv.model.secrets.secret_forms import encoded_forms, is_searched, spaced_forms, written_forms


def test_values_that_servers_without_keys_are_given_are_no_secrets():
    placeholders = ["no-key-required", "none-needed", "not-a-key", "not-needed", "not-required", "not-used"]
    placeholders += ["no_key_required", "not_needed", "not_required", "not_used", "lm-studio", "lm_studio"]
    placeholders += ["your-api-key", "your_api_key", "plaCeholder", " NOT-NEEDED\n"]
    assert [one for one in placeholders if is_searched(one)] == []


def test_a_secret_has_eight_characters_and_is_no_single_short_word():
    found = {one: is_searched(one) for one in ("abcd1234", "01010101", "horse battery", "horsebattery", "horseBattery")}
    assert [one for one, searched in found.items() if not searched] == []
    left = ["abcd123", "00000000", "hippopotami", "Hippopotami", "HIPPOPOTAMI", "localhost"]
    assert [one for one in left if is_searched(one)] == []


SIGNS = "p\"1é<'&\\z"


def test_a_secret_is_looked_for_in_json_python_html_and_urls_and_in_one_of_them_within_another():
    forms = set(written_forms(f" {SIGNS}\n"))
    inner = json.dumps(SIGNS)[1:-1], json.dumps(SIGNS, ensure_ascii=False)[1:-1]
    twice = [json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in inner for ascii_only in (False, True)]
    page = html.escape(SIGNS)
    python = repr(SIGNS)[1:-1]
    wanted = [SIGNS, *inner, *twice, page, python, json.dumps(python)[1:-1], json.dumps(page)[1:-1]]
    wanted += [html.escape(json.dumps(SIGNS)[1:-1]), page.replace("&#x27;", "&#39;")]
    wanted += [SIGNS.replace("&", "&amp;").replace("<", "&lt;"), "p%221%C3%A9%3C%27%26%5Cz", "p%221%c3%a9%3c%27%26%5cz"]
    assert [one for one in wanted if one not in forms] == []


def test_no_form_of_a_secret_holds_more_than_the_secret_at_its_ends():
    forms = [*written_forms(SIGNS)]
    assert [one for one in forms if not (one.startswith("p") and one.endswith("z"))] == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_secret_of_several_lines_is_looked_for_with_the_line_ends_of_unix_and_of_windows(end):
    forms = set(written_forms(f"line one{end}line two"))
    assert {"line one\nline two", "line one\r\nline two", f"line one{end}line two"} <= forms
    assert {"line one\\nline two", "line one\\r\\nline two"} <= forms


def settled(encode, data, before, group):
    """The characters that are the same whatever is around the data, `before` bytes behind the start of a group."""
    behind = 120 - before - len(data)  # a size of whole groups in every encoding
    zeros, ones = (encode(fill * before + data + fill * behind).decode() for fill in (b"\1", b"\xfe"))
    if group == 1:
        return "".join(one for one, other in zip(zeros, ones, strict=True) if one == other)
    groups = [(zeros[at : at + group], ones[at : at + group]) for at in range(0, len(zeros), group)]
    return "".join(one for one, other in groups if one == other)


@pytest.mark.parametrize("data", [b"Xk93mPq2Lw81", b"hunter2-Hunter2", b"a\xc3\xa9b c\xc3\xa9d 12", b"0123456789+/-_~"])
def test_an_encoded_secret_is_looked_for_as_it_reads_whatever_is_around_it(data):
    base64 = {settled(b64encode, data, before, 1) for before in range(3)}
    base32 = {settled(b32encode, data, before, 1) for before in range(5)}
    base85 = {settled(encode, data, before, 5) for encode in (b85encode, a85encode) for before in range(4)}
    for_urls = {one.replace("+", "-").replace("/", "_") for one in base64}
    forms = set(encoded_forms(f" {data.decode()}\n"))
    assert base64 | for_urls | base32 | base85 | {data.hex(), data.hex().upper()} == forms
    assert set(spaced_forms(data.decode())) == {
        form for sign in ": " for form in (data.hex(sign), data.hex(sign).upper())
    }


def test_a_long_value_is_looked_for_in_base64_alone():
    for size, is_long in ((1000, False), (1001, True)):
        value = ("Xk93mPq2" * 200)[:size]
        assert (value.encode().hex() not in set(encoded_forms(value))) is is_long
        assert (not [*spaced_forms(value)]) is is_long
        assert b64encode(value.encode()).decode()[:1000] in "".join(encoded_forms(value))


def test_half_a_character_in_a_secret_is_no_error():
    value = "pass\ud800word-1234"
    assert "pass?word-1234" in {form.encode(errors="replace").decode() for form in written_forms(value)}
    assert b"pass?word-1234".hex() in set(encoded_forms(value))
    assert b"pass?word-1234".hex(":") in set(spaced_forms(value))
