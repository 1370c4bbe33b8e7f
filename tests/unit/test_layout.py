"""`tests/unit` mirrors `src/agentv`: a test file is named after the module or package that it tests."""

from pathlib import Path

UNIT = Path(__file__).parent
SOURCE = UNIT.parents[1] / "src" / "agentv"

OF_SEVERAL_MODULES = {
    "extensions/agents/adapters/test_recorded_streams.py": "adapters of several agents, with what their programs printed",
    "extensions/mutate/test_judges.py": "mutants graded by a model, and where its budget ends",
    "app/planning/test_resumed_settings.py": "what a resumed run keeps, from its files, beside test_resume.py that runs",
    "assertions/test_laws.py": "laws that all types hold",
    "authoring/test_hostile_files.py": "files that are to exhaust the loader",
    "authoring/test_older_words.py": "older spellings, from the text to the suite",
    "authoring/test_places.py": "positions, from the text to the diagnostic",
    "extensions/view/test_one_rate.py": "one rate of a run in every view",
    "judge/test_adversaries.py": "answers that grade themselves, in each mode of rubrics and each judged type",
    "judge/test_hostile_replies.py": "replies whose drafts, thoughts and examples are no verdicts, in each mode",
    "prompts/test_log.py": "the log of a prompt, written and read",
    "stats/test_coverage.py": "what intervals cover, by simulation",
    "targets/model_api/test_every_provider.py": "one contract for the providers of a model API",
    "targets/test_openai_replies.py": "replies of all servers that speak OpenAI's API",
    "test_catalogues.py": "every name of both catalogues, in everything that reads them",
    "test_layout.py": "this file",
    "test_public_api.py": "the names of the public API, of three modules",
    "testing/test_anthropic.py": "the server, asked by Anthropic's library",
    "testing/test_azure_and_ollama.py": "the server, asked as Azure and Ollama are",
    "testing/test_by_hand.py": "the server, started from a command line",
    "testing/test_faults.py": "faults of the server, in all protocols",
    "extensions/agents/workspaces/test_hostile_agents.py": "agents that cheat or do not end, in each sandbox",
}
"""Tests of more than one module → their subject."""


def has_a_module(test: Path) -> bool:
    """Whether a test is named after a module or package, as in `test_MODULE_TOPIC.py`."""
    words, folder = test.stem.removeprefix("test_").split("_"), SOURCE / test.parent
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    return any((folder / f"{name}.py").is_file() or (folder / name).is_dir() for name in names) or folder.name in names


def test_a_file_of_tests_is_named_after_what_it_tests():
    tests = [path.relative_to(UNIT) for path in UNIT.rglob("test_*.py")]
    without = {test.as_posix() for test in tests if not has_a_module(test)}
    assert without - OF_SEVERAL_MODULES.keys() == set(), "rename them like their module, or say what they are about"
    assert OF_SEVERAL_MODULES.keys() - without == set(), "they are gone, or named after a module"
