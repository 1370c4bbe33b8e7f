"""What a target loads before its first call."""

import time

from agentv.model.values.response import TargetResponse
from agentv.targets.http.preparation import Imports
from agentv.user_code.deadline import Deadline, in_time
from agentv.user_code.threads import DaemonThreads


async def test_loading_takes_no_time_of_the_call_nor_of_the_grade_that_waits_for_it():
    imports = Imports(DaemonThreads(), lambda: time.sleep(0.3))

    async def answer():
        await imports.ready()
        return TargetResponse(output="Hi")

    async def grade():
        return await in_time(answer(), Deadline(0.1), code="target-raised", what="judge", missing="answer")

    given = await in_time(grade(), Deadline(0.2), code="assertion-raised", what="llm-rubric", missing="grade")
    assert given == TargetResponse(output="Hi")
