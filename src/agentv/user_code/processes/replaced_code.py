"""Detection of user code in this process that has replaced parts of agentv's own code.

Names are looked up at every use, so that one assignment would change what a grade means, or what a command comes to.
What modules and classes of agentv hold when users' code is first loaded, or when a module is loaded after that, they
have to hold when a verdict of a judge or a row is written, when the trials of a run have ended, and when results are
printed. Names may be added, unless they hide what Python would use without them.

This is no protection from code that puts everything back, that changes objects in place, or that writes into the memory
of the process: nothing in one process is. A command that loads no user code has nothing to compare, and spends no time
on it.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from agentv.errors import ReplacedCodeError
from agentv.user_code.processes.own_code import OURS, OwnCode, is_from_here


class _Finder:
    """Finds modules of agentv as Python does, and tells what was loaded before anybody can change it.

    Args:
        expect: called with the name of a module that is about to be loaded.
        loaded: called with the name of a module and the module.
    """

    def __init__(self, expect: Callable[[str], None], loaded: Callable[[str, ModuleType], None]) -> None:
        self._expect = expect
        self._loaded = loaded

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of agentv; None for any other module, which the next finder finds."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(OURS) else None
        if spec is None or spec.loader is None or not is_from_here(spec) or "exec_module" in vars(spec.loader):
            return spec  # a loader that loads several modules is prepared already
        execute = spec.loader.exec_module
        self._expect(name)

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._loaded(module.__name__, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class CodeCheck:
    """The comparison of one process, from its first user code to its end."""

    def __init__(self) -> None:
        self._own: OwnCode | None = None
        self._compare: Callable[[], str | None] | None = None
        self._finder: _Finder | None = None
        self._found: str | None = None
        self._begun = False
        self._has_user_code = False
        self._lock = _thread.RLock()

    def begin(self) -> None:
        """This process belongs to one command. User code that was loaded before counts from here."""
        self._begun = True
        self._own = self._compare = None
        if self._has_user_code:
            self._start()

    def expect_user_code(self) -> None:
        """User code is about to be loaded. To be called before each time; a second thread waits for the first."""
        with self._lock:
            if self._has_user_code:
                return
            if self._begun:
                self._start()
            self._has_user_code = True

    def _start(self) -> None:
        self._own = OwnCode()
        self._compare = self._own.replaced  # as it is now
        if self._finder is None:
            self._finder = _Finder(self._expect, self._add)
            sys.meta_path.insert(0, self._finder)

    def _expect(self, name: str) -> None:
        with self._lock:
            if self._own is not None:
                self._own.expect(name)

    def _add(self, name: str, module: ModuleType) -> None:
        with self._lock:
            if self._own is not None:
                self._own.add(name, module)

    def replaced(self) -> str | None:
        """The name of what was replaced in agentv; None: nothing was.

        Once one is found, it is the answer from then on, even if it is put back.
        """
        with self._lock:
            if self._found is None and self._compare is not None:
                self._found = self._compare()
            return self._found

    def note(self, name: str) -> None:
        """Another process of this run found that user code replaced something there."""
        if self._begun and self._found is None:
            self._found = name

    def refuse(self) -> None:
        """Nothing, if the code of agentv is what it was.

        Raises:
            ReplacedCodeError: something was replaced, and may have graded.
        """
        name = self.replaced()
        if name is not None:
            raise ReplacedCodeError(name)


check = CodeCheck()
"""That of this process."""
