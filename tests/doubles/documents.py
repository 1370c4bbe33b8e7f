"""PDFs for tests."""

from pathlib import Path

from agentv.model.values.message import DocumentBlock

PDF = b"%PDF-1.7 rest"
PDF_BASE64 = "JVBERi0xLjcgcmVzdA=="


def pdf(folder: Path, name: str = "report.pdf") -> DocumentBlock:
    """Write a PDF and return its document block."""
    (folder / name).write_bytes(PDF)
    return DocumentBlock(f"./{name}", str(folder / name), name)
