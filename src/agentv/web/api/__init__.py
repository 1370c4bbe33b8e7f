"""The JSON API, one file for each kind of thing."""

from agentv.web.api.cases import ENDPOINTS as CASES
from agentv.web.api.comparison import ENDPOINTS as COMPARISON
from agentv.web.api.editing import ENDPOINTS as EDITING
from agentv.web.api.labels import ENDPOINTS as LABELS
from agentv.web.api.prompts import ENDPOINTS as PROMPTS
from agentv.web.api.rerunning import ENDPOINTS as RERUNNING
from agentv.web.api.runs import ENDPOINTS as RUNS
from agentv.web.api.trend import ENDPOINTS as TREND

ENDPOINTS = (*RUNS, *CASES, *COMPARISON, *EDITING, *LABELS, *PROMPTS, *TREND, *RERUNNING)
