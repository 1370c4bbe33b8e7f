import pytest

from agentv.assertions.text.similarity import LONGEST, Bleu, Gleu, RougeN, words
from doubles.nested_grading import graded

REFERENCE = "The cat sat on the mat, and slept."
ANSWER = "the cat was on the mat"

GUIDE = "It is a guide to action which ensures that the military always obeys the commands of the party"
FORCED = "It is a guide to action that ensures that the military will forever heed Party commands"
ALWAYS = "It is the guiding principle which guarantees the military forces always being under the command of the Party"


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("output", [ANSWER, REFERENCE, "no word in common", "", "cat cat cat cat"])
def test_rouge_is_what_googles_library_computes(n, output):
    from rouge_score.rouge_scorer import RougeScorer  # imports NLTK and SciPy, which takes a second, for two tests

    expected = RougeScorer([f"rouge{n}"]).score(REFERENCE, output)[f"rouge{n}"].fmeasure
    assert graded(RougeN(REFERENCE, n=n), output).score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("output", [ANSWER, REFERENCE, GUIDE, "no word in common"])
def test_bleu_is_what_sacrebleu_computes(output):
    import sacrebleu

    expected = sacrebleu.sentence_bleu(output, [REFERENCE, GUIDE], lowercase=True).score / 100
    assert graded(Bleu((REFERENCE, GUIDE)), output).score == pytest.approx(min(expected, 1), abs=1e-12)


@pytest.mark.parametrize("references", [(FORCED,), (ALWAYS,), (FORCED, ALWAYS)])
def test_gleu_is_what_nltk_computes(references):
    from nltk.translate.gleu_score import sentence_gleu

    expected = max(sentence_gleu([words(one)], words(GUIDE)) for one in references)
    assert graded(Gleu(references), GUIDE).score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("reference", "output", "score"),
    [
        ("the cat sat", "The cat ran.", 3 / 6),  # of 6 n-grams, 'the', 'cat' and 'the cat' are shared
        ("the cat sat", "the cat", 3 / 6),  # recall
        ("the cat", "the cat sat", 3 / 6),  # precision
        ("the cat sat on the mat", "the the the", 2 / 18),  # each counts at most as often as in the reference
    ],
)
def test_gleu_is_the_lower_of_precision_and_recall(reference, output, score):
    assert graded(Gleu(reference), output).score == pytest.approx(score)


@pytest.mark.parametrize("kind", [RougeN, Bleu, Gleu])
class TestEveryMetric:
    def test_the_threshold_decides_and_the_evidence_says_so(self, kind):
        score = graded(kind(REFERENCE), ANSWER).score
        assert graded(kind(REFERENCE, threshold=score), ANSWER).passed
        failed = graded(kind(REFERENCE, threshold=min(score + 0.01, 1)), ANSWER)
        assert not failed.passed
        assert failed.has_own_threshold
        assert f"scores {score:.4g}, threshold " in failed.checks[0].evidence

    def test_an_endless_answer_is_no_verdict(self, kind):
        assert graded(kind(REFERENCE), "a" * (LONGEST + 1)).error.code == "too-long"

    def test_a_reference_without_a_word_is_a_fault(self, kind):
        assert [fault.path for fault in kind("…").validate()] == [("value",)]
        assert [fault.path for fault in kind(("a", "…")).validate()] == [("value", 1)]


def test_defaults_are_those_of_promptfoo():
    assert (RougeN("a").threshold, Bleu("a").threshold, Gleu("a").threshold) == (0.75, 0.5, 0.5)
    assert RougeN("a").n == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It's 3.5 kg!", ["it", "s", "3", "5", "kg"]),
        ("Ærø-ØL snake_case", ["ærø", "øl", "snake", "case"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("… !", []),
    ],
)
def test_words(text, found):
    assert words(text) == found
