"""Suggestions for unknown keys in data."""

import pytest

from agentv.authoring.cases.data_files.rows import may_mean_known

NEAR = (
    *("asert", "critera", "expected_ouput", "threshhold", "outcome2", "crit", "thresh", "dependsOn", "metaData"),
    *("Assert", "EXPECTED_OUTPUT", "expected-output", "expectedOutput", "conversationId", "execution.assert"),
    *("expected", "expected_result", "ideal", "ground_truth", "reference", "question", "prompt", "correct_output"),
    *("assertions_2", "myThreshold", "evaluationSteps", "criterion", "scoring", "expectations", "rubric"),
    *("timeout_ms", "targetModel", "repeat_count", "value", "type", "weight", "default_test", "run", "", "--"),
)
FAR = (
    *("task", "mustMention", "scenarioCategory", "expectedKind", "expectedPaths", "expectedToolIds", "intent"),
    *("location", "scriptedAnswers", "user_id", "conversation_type", "category", "version", "source", "language"),
    *("topic", "difficulty", "ж" * 5, "x" * 5_000),
)


@pytest.mark.parametrize("key", NEAR)
def test_a_key_that_may_mean_a_known_one_is_none_of_the_users_own(key):
    assert may_mean_known(key)


@pytest.mark.parametrize("key", FAR, ids=lambda key: key[:20])
def test_a_key_that_is_close_to_none_is_the_users_own(key):
    assert not may_mean_known(key)
