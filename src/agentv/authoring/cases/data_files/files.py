"""Names of the files that hold tables, and the libraries that read them."""

from __future__ import annotations

from pathlib import Path

from agentv.authoring.source.files import EXCEL, PARQUET
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.registry.extras import missing_extra
from agentv.registry.fields import Issue

HUB = ("hf://", "huggingface://")
"""Prefixes of a dataset of Hugging Face; the second is promptfoo's, which is answered with the first."""

_SHEET = lazy_pattern(r"(?P<path>.+\.(?:xlsx|xlsm))#(?P<sheet>.*)")


def split_sheet(written: str) -> tuple[str, str | None]:
    """The path and the sheet of `FILE.xlsx#SHEET`; None: the reference names no sheet."""
    found = _SHEET.fullmatch(written)
    return (written, None) if found is None else (found["path"], found["sheet"].strip())


def missing_library(path: str) -> Issue | None:
    """The Issue `missing-extra` where the library that reads a file is not installed."""
    suffix = Path(path).suffix
    if suffix in EXCEL:
        return missing_extra("openpyxl", "data", "reading an Excel file")
    return missing_extra("pyarrow", "data", f"reading {'a Parquet' if suffix in PARQUET else 'an Arrow'} file")
