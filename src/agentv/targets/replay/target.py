"""`replay`: answers that were recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, FileOrDirectoryPath, Text
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.once import Once

if TYPE_CHECKING:
    from agentv.targets.replay.recordings import Recordings


@dataclass(frozen=True, slots=True)
class Replay(ProviderSettings):
    """Returns recorded answers; a case without a recording is an error."""

    calls: ClassVar[Calls] = "nothing"
    example: ClassVar[str | None] = "answers.jsonl"
    short: ClassVar[str | None] = "fixtures"
    free: ClassVar[bool] = True

    fixtures: Annotated[
        FileOrDirectoryPath,
        Doc(
            "JSONL of rows with `test_id` (or `id`) and `output`, and optionally `sample`, `token_usage`, …; "
            "or a directory of such files, or of a run"
        ),
    ]

    suite: Annotated[Text | None, Doc("use the rows of this suite only")] = None
    source_target: Annotated[Text | None, Doc("use the rows of this target only")] = None
    variant: Annotated[Text | None, Doc("use the rows of this variant only")] = None

    @property
    def rows(self) -> Mapping[str, str]:
        """Conditions that a row must meet to be used."""
        settings = {"suite": self.suite, "source_target": self.source_target, "variant": self.variant}
        return {key: value for key, value in settings.items() if value is not None}

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that reads the file when it is first asked."""
        del spec
        return _Replay(self, executor)


class _Replay:
    def __init__(self, settings: Replay, executor: Executor) -> None:
        self._settings = settings
        self._executor = executor
        self._reading: Once[Recordings | Failure] = Once()
        self._read: Recordings | Failure | None = None

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        if self._read is None:
            return self._answer_first(request)
        return self._find(self._read, request)

    async def _answer_first(self, request: TargetRequest) -> TargetResponse | Failure:
        self._read = await self._reading.result(self._open)
        return self._find(self._read, request)

    async def _open(self) -> Recordings | Failure:
        from agentv.targets.replay.recordings import Recordings

        return await self._executor.call(lambda: Recordings.open(self._settings.fixtures, self._settings.rows))

    @staticmethod
    def _find(read: Recordings | Failure, request: TargetRequest) -> TargetResponse | Failure:
        if isinstance(read, Failure):
            return read
        return read.answer(request.case_id, request.sample, request.prompt_id, request.turn)

    async def close(self) -> None:
        """Close the file."""
        await self._reading.close()
        if self._read is not None and not isinstance(self._read, Failure):
            self._read.close()
