"""Which values count as secrets."""

from agentv.model.redaction import forms_of, is_searched


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


def test_a_secret_is_found_as_json_of_any_writer_has_it():
    assert {'a/b"c-d-e', 'a/b\\"c-d-e', 'a\\/b\\"c-d-e'} <= forms_of('a/b"c-d-e')
