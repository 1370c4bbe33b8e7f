from agentv.judge.delimiter import Delimiter


def test_every_fence_is_new():
    assert len({Delimiter.new().token for _ in range(100)}) == 100
