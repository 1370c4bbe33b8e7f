import pytest

from agentv.stats.power import split

# strength of a chemical paste by batch, three casks each, two assays of a cask; yield of a dye by batch, five each
# O. L. Davies, P. L. Goldsmith, Statistical Methods in Research and Production (1972); `Pastes`, `Dyestuff` of R's lme4
PASTES = (
    "62.8 62.6 60.1 62.3 62.7 63.1 60 61.4 57.5 56.9 61.1 58.9 58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 56.9 58.6 64.7 "
    "64.5 55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60 62.5 62.6 61 58.7 56.9 57.7 59.2 59.4 65.2 66 64.8 "
    "64.1 54.8 54.8 64 64 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6"
)
DYESTUFF = (
    "1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560 1445 1440 1595 1465 1545 1595 1630 1515 "
    "1635 1625 1520 1455 1450 1480 1445"
)


def test_agrees_with_lme4_on_two_levels_of_noise():
    # R 4.2.2, lme4 1.1-31: VarCorr(lmer(strength ~ 1 + (1 | batch/cask), Pastes)): 1.6573, 8.4337, 0.6780, which its
    # optimiser finds to six digits; exactly, from anova(aov(strength ~ batch/cask, Pastes)):
    squares = (27.4891851852, 17.5453333333, 0.678)
    found = split((place // 6, place // 2, float(one)) for place, one in enumerate(PASTES.split()))
    assert found.counts == (10, 30, 60)
    assert found.judge == pytest.approx(squares[2], abs=1e-9)
    assert found.target == pytest.approx((squares[1] - squares[2]) / 2, abs=1e-9)
    assert found.cases == pytest.approx((squares[0] - squares[1]) / 6, abs=1e-9)
    assert (found.target, found.cases) == (pytest.approx(8.433665931, abs=2e-6), pytest.approx(1.657310911, abs=3e-6))


def test_agrees_with_lme4_on_one_level_of_noise():
    # VarCorr(lmer(Yield ~ 1 + (1 | Batch), Dyestuff)): 1764.05, 2451.25
    found = split((place // 5, place, float(one)) for place, one in enumerate(DYESTUFF.split()))
    assert (found.cases, found.target, found.judge) == (pytest.approx(1764.05), pytest.approx(2451.25), None)


@pytest.mark.parametrize(
    ("votes", "advice"),
    [
        ([(case, answer, float(case % 2)) for case in range(6) for answer in range(3)], "more cases"),
        ([(case, answer, float(answer % 2)) for case in range(6) for answer in range(4)], "more cases"),
        (
            [(case, answer, float(vote)) for case in range(6) for answer in range(2) for vote in range(2)],
            "a steadier judge",
        ),
        ([(case, answer, 1.0) for case in range(6) for answer in range(2)], None),
    ],
)
def test_advises_more_cases_unless_the_judge_is_the_largest_part(votes, advice):
    assert split(votes).advice() == advice


def test_refuses_nothing_at_all():
    with pytest.raises(ValueError, match="no votes"):
        split([])


def test_unequal_numbers_by_the_formulas_of_searle_casella_and_mcculloch():
    votes = [("a", 1, 0.1), ("a", 1, 0.3), ("a", 2, 0.5), ("b", 1, 0.9), ("b", 2, 0.6), ("b", 2, 0.8), ("b", 3, 0.7)]
    found = split(votes)
    # votes within answers: two answers with two votes, of which each lies 0.1 from its mean
    judge = 4 * 0.01 / (7 - 5)
    # answers within cases: means 0.2 (2), 0.5 of 0.3; 0.9, 0.7 (2), 0.7 of 0.75
    of_answers = 2 * 0.01 + 0.04 + 0.0225 + 2 * 0.0025 + 0.0025
    in_case = (4 + 1) / 3 + (1 + 4 + 1) / 4
    target = (of_answers - 3 * judge) / (7 - in_case)
    whole = 3.9 / 7
    of_cases = 3 * (0.3 - whole) ** 2 + 4 * (0.75 - whole) ** 2
    noise = judge + (in_case - (4 + 1 + 1 + 4 + 1) / 7) * target
    cases = (of_cases - noise) / (7 - (9 + 16) / 7)
    assert (found.judge, found.target, found.cases) == pytest.approx((judge, target, cases))
    assert found.counts == (2, 5, 7)
