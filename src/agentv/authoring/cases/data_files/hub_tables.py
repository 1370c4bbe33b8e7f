"""Splits of datasets on the Hugging Face Hub as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentv.authoring.cases.data_files.arrow_file import ArrowTable
from agentv.authoring.cases.data_files.hub_files import missing_hub, split_files
from agentv.authoring.cases.data_files.hub_reference import HubError, read_reference
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Scalar


def tables_of_split(written: str, node: Scalar, reading: Reading) -> Sequence[ArrowTable] | None:
    """The files of a split as tables, which the suite may read then; None where they cannot be had: reported.

    Args:
        written: the reference, such as `hf://ORG/NAME/SPLIT`.
        node: where it is written.
        reading: of the suite.
    """
    missing = missing_hub()
    if missing is not None:
        reading.report.error(missing.code, node, missing.message, hint=missing.hint)
        return None
    try:
        found = split_files(read_reference(written), reading.scope.env.get("HF_TOKEN"))
    except HubError as error:
        reading.report.error("bad-dataset", node, str(error), hint=error.hint)
        return None
    boundary = reading.places.boundary
    if boundary is not None:
        boundary.trees.append(os.path.realpath(found.directory) + os.sep)
    return [ArrowTable(path) for path in found.paths]
