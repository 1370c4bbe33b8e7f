"""Hugging Face datasets from a cache, without a network."""

from pathlib import Path

import pytest

from agentv.authoring.cases.data_files.hub_files import FORM, HubError, files_of_split, read_reference
from doubles.loading import outcome, repository
from needs import imported, needs

pytestmark = needs("huggingface_hub", "pyarrow")
pa = imported("pyarrow")
pq = imported("pyarrow.parquet")

COMMIT, OLDER = "a" * 40, "b" * 40
SUITE = "target: echo\ninput: 'ask {{ q }}'\nassert: [contains: a]\ntests: REFERENCE\n"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Return the directory of acme/qa in a Hub cache, and block the network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub" / "datasets--acme--qa"


def hold(cache: Path, files: dict[str, list[str] | str], commit: str = COMMIT, ref: str = "main") -> None:
    """Put a commit's files into the cache: texts, or the questions of a Parquet file."""
    (cache / "refs").mkdir(parents=True, exist_ok=True)
    (cache / "refs" / ref).write_text(commit, encoding="utf-8")
    for name, content in files.items():
        path = cache / "snapshots" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            pq.write_table(pa.table({"q": content}), path)


def loaded(folder: Path, reference: str):
    repository(folder / "project", {"suite.eval.yaml": SUITE.replace("REFERENCE", reference)})
    suites, found = outcome(folder / "project" / "suite.eval.yaml")
    said = [(one.code, one.message, one.hint) for one in found]
    return ([(one.id, one.vars["q"]) for one in suites[0].cases] if suites else None), said


def test_a_split_of_the_cache_is_read_without_a_network(tmp_path, cache):
    shards = {f"data/train-0000{n}-of-00002.parquet": [f"lamp {n}", f"chair {n}"] for n in range(2)}
    hold(cache, {"README.md": "# QA", **shards, "data/test-00000-of-00001.parquet": ["test"]})
    hold(cache, {"data/test-00000-of-00001.parquet": ["older"]}, OLDER, "v1")
    cases, found = loaded(tmp_path, "hf://acme/qa/train")
    assert found == []
    assert cases == [("row-1", "lamp 0"), ("row-2", "chair 0"), ("row-3", "lamp 1"), ("row-4", "chair 1")]
    assert loaded(tmp_path, "hf://acme/qa/test") == ([("row-1", "test")], [])
    for revision in ("v1", OLDER):
        assert loaded(tmp_path, f"hf://acme/qa@{revision}/test") == ([("row-1", "older")], []), revision
    shown = loaded(tmp_path, "hf://acme/qa/tests")[1]
    assert shown == [("bad-dataset", "acme/qa has no split 'tests'", "did you mean 'test'?")]


def test_the_content_of_a_dataset_is_part_of_the_keys(tmp_path, cache):
    def digests() -> list[str]:
        suites, _ = outcome(tmp_path / "project" / "suite.eval.yaml")
        return [one.sha256 for one in suites[0].cases]

    hold(cache, {"train.parquet": ["lamp", "chair"]})
    loaded(tmp_path, "hf://acme/qa/train")
    first = digests()
    hold(cache, {"train.parquet": ["lamp", "table"]})
    assert [one == other for one, other in zip(first, digests(), strict=True)] == [True, False]


def test_what_cannot_be_had_is_said(tmp_path, cache):
    _, found = loaded(tmp_path, "hf://acme/qa/train")
    message = "acme/qa is not in the cache of Hugging Face, and there is no network"
    assert found == [("bad-dataset", message, "run it once with a network, and without HF_HUB_OFFLINE")]
    hold(cache, {"data/train-00000-of-00003.parquet": ["a"]})
    assert loaded(tmp_path, "hf://acme/qa/train")[1][0][1] == "the cache has 1 of 3 files of hf://acme/qa/train"
    assert loaded(tmp_path, "hf://acme/qa@v9/train")[1][0][1] == message.replace("qa", "qa at 'v9'")
    hold(tmp_path / "hub" / "datasets--acme--script", {"script.py": "raise SystemExit(1)"})
    _, ((code, message, hint),) = loaded(tmp_path, "hf://acme/script/train")
    shown = (code, message)
    assert shown == ("bad-dataset", "acme/script has no files that agentv reads: .parquet, .arrow, .jsonl, .json, .csv")
    assert hint == "its program is not run; write hf://acme/script@refs/convert/parquet/CONFIG/train"
    for wrong in ("hf://acme/qa", "hf://datasets/acme/qa/train.parquet", "hf://qa/train", "hf://a/b/c/d/e"):
        assert loaded(tmp_path, wrong)[1][0][0] == "bad-dataset", wrong


def test_text_files_of_a_dataset_have_types(tmp_path, cache):
    hold(
        cache,
        {"train.jsonl": '{"q": "a", "n": 1, "l": ["x"]}\n{"q": "b", "n": null, "l": []}\n', "test.csv": "q,n\na,1\n"},
    )
    assert loaded(tmp_path, "hf://acme/qa/train") == ([("row-1", "a"), ("row-2", "b")], [])
    assert loaded(tmp_path, "hf://acme/qa/test") == ([("row-1", "a")], [])


def test_subsets_and_splits_are_those_of_the_readme(tmp_path, cache):
    readme = """---
configs:
  - config_name: en
    default: true
    data_files:
      - {split: train, path: "en/part-*.parquet"}
      - {split: held_out, path: ["en/more/**"]}
  - config_name: de
    data_dir: de
---
# text
"""
    files = {"en/part-1.parquet": ["en"], "en/more/x.parquet": ["more"], "de/train.parquet": ["de"]}
    hold(cache, {"README.md": readme, **files})
    found = {one: loaded(tmp_path, f"hf://acme/qa/{one}")[0] for one in ("train", "held_out", "de/train", "en/train")}
    shown = {name: cases[0][1] for name, cases in found.items()}
    assert shown == {"train": "en", "held_out": "more", "de/train": "de", "en/train": "en"}
    shown = loaded(tmp_path, "hf://acme/qa/fr/train")[1][0][1:]
    assert shown == ("acme/qa has no subset 'fr'", "its subsets are de, en")


def test_the_spelling_of_promptfoo_is_answered_with_ours(tmp_path):
    _, ((code, _, hint),) = loaded(tmp_path, "huggingface://datasets/acme/qa?split=dev")
    assert (code, hint) == ("bad-dataset", f"write {FORM}")


def test_splits_by_the_names_of_files():
    def splits(files: list[str], wanted: str, readme=None) -> list[str]:
        return list(files_of_split(read_reference(wanted), files, readme or {}))

    assert splits(["a/validation/1.csv", "a/x_train.csv"], "hf://a/b/validation") == ["a/validation/1.csv"]
    assert splits(["my-dev.jsonl", "tested.csv"], "hf://a/b/validation") == ["my-dev.jsonl"]
    assert splits(["one.csv", "two.csv", ".hidden.csv", "README.md"], "hf://a/b/train") == ["one.csv", "two.csv"]
    converted = ["default/train/0000.parquet", "fr/train_sft/0000.parquet"]
    assert splits(converted, "hf://a/b@refs/convert/parquet/fr/train_sft") == [converted[1]]
    several = {"configs": [{"config_name": "x", "data_files": "x.csv"}, {"config_name": "y", "data_files": "y.csv"}]}
    with pytest.raises(HubError, match="has several subsets: x, y"):
        splits(["x.csv", "y.csv"], "hf://a/b/train", several)
    negated = {"configs": [{"config_name": "x", "data_files": "[!t]*.csv"}]}
    assert splits(["train.csv", "x.csv"], "hf://a/b/train", negated) == ["x.csv"]
    with pytest.raises(HubError, match="has none of the formats"):
        splits(["x.txt"], "hf://a/b/train", {"configs": [{"config_name": "x", "data_files": "x.txt"}]})
    with pytest.raises(HubError, match="is no pattern"):
        splits(["x.csv"], "hf://a/b/train", {"configs": [{"config_name": "x", "data_files": "[z-a].csv"}]})
