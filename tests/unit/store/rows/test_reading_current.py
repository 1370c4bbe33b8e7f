import json

from agentv.store.rows.reading import replaced_lines


def test_of_several_rows_of_one_trial_the_last_counts(tmp_path):
    index = tmp_path / "index.jsonl"
    keys = ["a", "b", "a", "c", "b", "a"]
    index.write_text("\n".join(json.dumps({"key": key}) for key in keys[:3]) + "\n\n")
    with index.open("a") as file:
        file.writelines(json.dumps({"key": key}) + "\n" for key in keys[3:])

    assert replaced_lines(index) == {1, 2, 3}  # line 4 is empty


def test_a_line_that_is_no_row_replaces_nothing(tmp_path):
    index = tmp_path / "index.jsonl"
    index.write_text('{"key": "a"}\n{"other": 1}\nno json\n{"key": "b"}\n')

    assert replaced_lines(index) == frozenset()
    assert replaced_lines(tmp_path / "none") == frozenset()
