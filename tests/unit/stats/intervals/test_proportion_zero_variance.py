import pytest

from agentv.stats.intervals.proportion import cases_for_share, unseen_share


@pytest.mark.parametrize(
    ("seen", "level", "share"), [(40, 0.95, 0.0880973028788024), (1, 0.95, 0.975), (40, 0.9, 0.0721575245055146)]
)
def test_agrees_with_r(seen, level, share):
    # R 4.2.2: binom.test(0, seen, conf.level = level)$conf.int[2]
    assert unseen_share(seen, level) == pytest.approx(share)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02, 0.001])
def test_so_many_cases_leave_no_larger_share_unseen_and_one_fewer_does(share):
    cases = cases_for_share(share)
    assert unseen_share(cases) <= share < unseen_share(cases - 1)
    assert cases_for_share(1.0) == 1


def test_refuses_what_nobody_saw():
    with pytest.raises(ValueError, match="nothing was seen"):
        unseen_share(0)


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_how_many_cases_it_takes_depends_on_the_level(level):
    cases = cases_for_share(0.1, level)
    assert unseen_share(cases, level) <= 0.1 < unseen_share(cases - 1, level)
    assert (cases_for_share(1.5), unseen_share(1, 0.9)) == (1, pytest.approx(0.95))
