"""Clusters that cannot be joined are reported at once, and in our words."""

import pytest

from agentv.errors import UsageError
from agentv.extensions.ray.executor import cluster
from needs import needs


def refusal(address: str) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as found, cluster(address):
        raise AssertionError("it was joined")
    return str(found.value), found.value.hint


@needs("ray")
def test_an_address_that_is_none_is_told():
    message, _ = refusal("nonsense")
    assert message.startswith("no Ray cluster at nonsense: ")


@needs("ray")
def test_a_ray_client_is_refused_with_what_to_do():
    message, hint = refusal("ray://127.0.0.1:10001")
    assert message == "RAY_ADDRESS is ray://127.0.0.1:10001: agentv does not send trials through a Ray client"
    assert hint == "run agentv on a machine of the cluster, and set RAY_ADDRESS to auto"
