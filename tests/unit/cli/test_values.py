import click
import pytest

from agentv.cli.values import Share


@pytest.mark.parametrize(("written", "share"), [("0.05", 0.05), ("5%", 0.05), (" 12.5 % ", 0.125), (0.05, 0.05)])
def test_a_share_is_a_number_or_a_percentage(written, share):
    assert Share(0, 1).convert(written, None, None) == pytest.approx(share)


@pytest.mark.parametrize("written", ["140%", "1.4", "-5%", "%", "five%", "", "nan", "nan%"])
def test_what_is_no_share_is_refused(written):
    with pytest.raises(click.BadParameter):
        Share(0, 1).convert(written, None, None)
