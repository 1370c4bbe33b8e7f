"""`agentv prepare` and `agentv grade`: grade work that a person or another program does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, prepare
from agentv.app.settings import EvalSettings
from agentv.errors import AgentvError, Diagnostic, ExitStatus, UsageError
from agentv.extensions.agents.commands.substitutes import PreparedWork, substitute
from agentv.model.run.trial import Trial
from agentv.model.suite.workspace import WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, Trace

MANIFEST = "manifest.json"
PROMPT = "prompt.md"
WORKSPACE = "workspace"
_VERSION = 1

TARGET = "prepared"
"""Name of the target in the results of prepared work."""


class PreparationError(AgentvError):
    """A workspace could not be prepared."""

    status = ExitStatus.ERRORED


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case that was prepared.

    Attributes:
        directory: directory with the prompt, the manifest and the workspace.
        has_workspace: whether the case has one.
    """

    directory: Path
    has_workspace: bool
    diagnostics: tuple[Diagnostic, ...] = ()


def prepare_case(settings: EvalSettings, test_id: str, out: str) -> PreparedCase:
    """Write the prompt and the workspace of a case to a directory.

    Args:
        settings: the eval file, and the variant if there are several.
        test_id: id of the case.
        out: directory to create; it must not exist or must be empty.

    Raises:
        LoadError, UsageError: as for a run, or `test_id` does not select exactly one trial.
        PreparationError: the workspace cannot be created.
    """
    directory = Path(out)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{out} exists and is not an empty directory", "give a new directory")
    prepared = prepare(_settings(settings, test_id, PreparedWork("", "", None)))
    trial = _only(prepared, test_id)
    directory.mkdir(parents=True, exist_ok=True)
    if trial.case.workspace is not None:
        (directory / WORKSPACE).mkdir()
        failure = asyncio.run(_write_workspace(trial, trial.case.workspace, str(directory / WORKSPACE)))
        if failure is not None:
            shutil.rmtree(directory / WORKSPACE, ignore_errors=True)  # so that the command can be repeated
            raise PreparationError(f"{failure.message} [{failure.code}]")
    prompt = "\n\n".join(message.text for message in trial.case.input)
    (directory / PROMPT).write_text(prompt + "\n", encoding="utf-8")
    manifest = {
        "version": _VERSION,
        "suite": trial.suite.name,
        "eval_file": os.path.relpath(trial.suite.path, directory),
        "test_id": trial.case.id,
        "variant": trial.variant_name,
        "case_sha256": trial.case.sha256,
        "workspace": WORKSPACE if trial.case.workspace is not None else None,
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return PreparedCase(directory, trial.case.workspace is not None, prepared.diagnostics)


def work_to_grade(
    settings: EvalSettings, prepared: str, test_id: str, response: str | None = None, trace_path: str | None = None
) -> EvalSettings:
    """Return the settings of a run that grades prepared work.

    Args:
        settings: the eval file.
        prepared: directory that `agentv prepare` created.
        test_id: id of its case.
        response: path of a file with the answer; None: the last message of the trace, if any.
        trace_path: path of a `trace.json`.

    Raises:
        LoadError: the eval file is wrong.
        UsageError: the directory was not prepared for this case, or a file cannot be read.
    """
    from agentv.store.files.traces import read

    directory = Path(prepared)
    manifest = _manifest(directory)
    if manifest.get("test_id") != test_id:
        found = manifest.get("test_id")
        raise UsageError(f"{prepared} was prepared for the case '{found}', not for '{test_id}'")
    workspace = directory / WORKSPACE
    variant = manifest.get("variant")
    settings = replace(settings, variants=(variant,) if isinstance(variant, str) else ())
    trace = None if trace_path is None else read(trace_path)
    if isinstance(trace, Failure):
        raise UsageError(f"{trace_path}: {trace.message}", "give a trace.json; `agentv import` reads other formats")
    work = PreparedWork(str(workspace.resolve()), _response(response, trace), trace)
    settings = _settings(settings, test_id, work)
    trial = _only(prepare(settings), test_id)
    if trial.case.workspace is not None and (workspace.is_symlink() or not workspace.is_dir()):
        what = "is a link" if workspace.is_symlink() else "is missing"
        raise UsageError(f"{workspace} {what}, and must be a directory", "prepare the case again")
    if manifest.get("case_sha256") != trial.case.sha256:
        raise UsageError(f"the case '{test_id}' changed since it was prepared", "prepare it again")
    return settings


def _settings(settings: EvalSettings, test_id: str, work: PreparedWork) -> EvalSettings:
    # a missing answer is allowed: it errors only the assertions on it
    target = structs.replace(substitute(TARGET, work.act), allow_empty=True)
    settings = replace(settings, filter=test_id, targets=(), given_target=target, independent=True)
    return replace(settings, repeat=1, until=None, cache=False)


def _only(prepared: Prepared, test_id: str) -> Trial:
    """Return the only trial of a plan.

    Raises:
        UsageError: there is not exactly one.
    """
    trials = list(prepared.plan)
    if len(trials) == 1:
        return trials[0]
    case = next((trial.case for trial in trials if trial.case.id == test_id), None)
    if case is not None and trials[0].case.conversation_id:
        what = f"the prompt of '{test_id}' contains the answers before it in the conversation '{case.conversation_id}'"
        raise UsageError(f"{what}, which are not known", f"give the id of its first case: {trials[0].case.id}")
    variants = list(dict.fromkeys(trial.variant_name for trial in trials if trial.variant_name is not None))
    if len(variants) > 1:
        raise UsageError(f"the case '{test_id}' has several variants", f"add --variant {variants[0]}")
    raise UsageError(f"'{test_id}' stands for {len(trials)} trials", "give the id of one case with one prompt")


async def _write_workspace(trial: Trial, spec: WorkspaceSpec, place: str) -> Failure | None:
    """Create the workspace as for a trial, and copy it. The `after_each` hooks do not run."""
    from agentv.app.wiring import WorkspaceSettings
    from agentv.extensions.agents.workspaces.placing import copy_directory
    from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces

    workspaces = LocalWorkspaces(WorkspaceSettings(private=(trial.suite.root,)))
    try:
        opened = await workspaces.open(spec, trial.variant, trial.suite.own_env)
        if isinstance(opened, Failure):
            return opened
        try:
            return await copy_directory(opened.path, place)
        finally:
            await opened.discard()
    finally:
        await workspaces.close()


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "make it with `agentv prepare FILE --test-id ID --out DIR`"
        raise UsageError(f"{directory} is not a prepared case: {MANIFEST} cannot be read", hint) from error
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        raise UsageError(f"{directory / MANIFEST} is not a manifest of version {_VERSION}", "prepare the case again")
    return found


def _response(path: str | None, trace: Trace | None) -> str | None:
    """Return the answer: the content of a file, else the agent's last message in the trace, or None."""
    if path is not None:
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--response {path} cannot be read as UTF-8 text") from error
    steps = trace.steps if trace is not None else ()
    messages = (step for step in reversed(steps) if isinstance(step, MessageStep) and step.parent is None)
    return next((step.text for step in messages if step.role == "assistant"), None)
