import pytest

from agentv.assertions.judged.questions import ClosedQa
from agentv.assertions.judged.retrieval import ContextRelevance
from agentv.assertions.judged.rubric import LlmRubric
from agentv.authoring.code.fingerprints import digests_behind
from agentv.model.suite.assertion import Transform
from agentv.registry.fields import Command, Document, FunctionRef, JavaScriptSource, PromptCode


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("prompts.py", lambda path: PromptCode(FunctionRef("strict", path))),
        ("prompt.ts", lambda path: PromptCode(script=JavaScriptSource(path=path))),
        ("prompt.mjs", lambda path: PromptCode(command=Command(("node", "prompt.mjs"), cwd=path.rpartition("/")[0]))),
        ("prompt.md", lambda path: Document("{{ output }}", path)),
    ],
)
@pytest.mark.parametrize("kind", [lambda prompt: LlmRubric("a", prompt), lambda prompt: ClosedQa("a", prompt)])
def test_what_writes_a_judge_prompt_is_part_of_what_an_assertion_is(kind, name, code, tmp_path):
    path = tmp_path / name
    path.write_text("one")
    assertion = kind(code(str(path)))
    (before,) = digests_behind(assertion)
    path.write_text("another")
    assert digests_behind(assertion) != (before,)


def test_so_is_the_function_that_finds_a_context(tmp_path):
    path = tmp_path / "docs.py"
    path.write_text("def of(output): return output")
    assert len(digests_behind(ContextRelevance(context_transform=Transform("function", "of", str(path))))) == 1
    assert digests_behind(ContextRelevance(context_transform=Transform("path", "$.a"))) == ()
