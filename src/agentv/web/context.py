"""What the endpoints of one server share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from secrets import token_urlsafe

from agentv.app.labels.keeping import LabelFiles, LabelStore
from agentv.app.view.labelling import LabelQueues
from agentv.app.view.opened import OpenRuns
from agentv.app.view.project import Project
from agentv.app.view.runs import RunList
from agentv.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How the application was started.

    Attributes:
        edit: runs may be named and deleted.
        label: answers may be labelled.
        person: who labels; empty: nobody may.
    """

    edit: bool = False
    label: bool = False
    person: str = ""

    @property
    def writes(self) -> bool:
        """Whether anything may be changed."""
        return self.edit or self.label


class ViewContext:
    """The state of a server.

    Attributes:
        opened: runs that are open.
        runs: the list of runs.
        queues: answers of runs to label.
        person: who labels.
        labels_of: where the labels of a person are kept.
        answers: encoded answers that take long to make, by path and ETag.
        token: what requests that change something must carry; another one at each start.
    """

    def __init__(self, project: Project, options: ViewOptions) -> None:
        self.project = project
        self.options = options
        self.opened = OpenRuns(project)
        self.runs = RunList(self.opened)
        self.queues = LabelQueues(project)
        self.person = options.person
        self.labels_of: Callable[[str], LabelStore] = lambda _: LabelFiles(project.root)
        self.answers: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.token = token_urlsafe(32) if options.writes else ""

    def close(self) -> None:
        """Close all runs."""
        self.opened.close()
