import re

import pytest

from agentv.model.values.values import lazy_pattern


def test_nothing_is_compiled_before_its_use():
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("")
