"""The JSON API, one file for each kind of thing."""

from agentv.extensions.view.api.cases import ENDPOINTS as CASES
from agentv.extensions.view.api.comparison import ENDPOINTS as COMPARISON
from agentv.extensions.view.api.editing import ENDPOINTS as EDITING
from agentv.extensions.view.api.labels import ENDPOINTS as LABELS
from agentv.extensions.view.api.prompts import ENDPOINTS as PROMPTS
from agentv.extensions.view.api.rerunning import ENDPOINTS as RERUNNING
from agentv.extensions.view.api.runs import ENDPOINTS as RUNS
from agentv.extensions.view.api.trend import ENDPOINTS as TREND

ENDPOINTS = (*RUNS, *CASES, *COMPARISON, *EDITING, *LABELS, *PROMPTS, *TREND, *RERUNNING)
