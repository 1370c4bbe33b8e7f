"""The JSON API of the pages, one file for each kind of thing."""

from agentv.extensions.view.api.cases import ENDPOINTS as CASES
from agentv.extensions.view.api.comparison import ENDPOINTS as COMPARISON
from agentv.extensions.view.api.editing import ENDPOINTS as EDITING
from agentv.extensions.view.api.prompts import ENDPOINTS as PROMPTS
from agentv.extensions.view.api.rerunning import ENDPOINTS as RERUNNING
from agentv.extensions.view.api.runs import ENDPOINTS as RUNS
from agentv.extensions.view.api.trend import ENDPOINTS as TREND
from agentv.registry.extensions import ENDPOINTS as OF_EXTENSIONS
from agentv.registry.extensions import loaded, registered
from agentv.web.endpoints import Endpoint

_OWN: tuple[Endpoint, ...] = (*RUNS, *CASES, *COMPARISON, *EDITING, *PROMPTS, *TREND, *RERUNNING)


def endpoints() -> tuple[Endpoint, ...]:
    """All endpoints of a project: those of the pages, and those that extensions add."""
    return (*_OWN, *(one for name in registered(OF_EXTENSIONS) for one in loaded(OF_EXTENSIONS, name)))
