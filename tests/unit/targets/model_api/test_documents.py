"""PDFs as model APIs take them."""

from __future__ import annotations

from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.targets.model_api import documents
from agentv.targets.model_api.documents import Attached, document_of
from doubles.documents import PDF_BASE64, pdf


def test_a_pdf_has_the_name_of_its_file_and_its_bytes(tmp_path):
    found = document_of(pdf(tmp_path))
    assert found == Attached("report.pdf", PDF_BASE64)
    assert found.data_url == f"data:application/pdf;base64,{PDF_BASE64}"


def test_a_pdf_is_read_once_until_it_is_another(tmp_path):
    block = pdf(tmp_path, "once.pdf")
    first = document_of(block)
    (tmp_path / "once.pdf").write_bytes(b"%PDF-2.0")
    assert document_of(block) is first
    assert document_of(replace(block, sha256="another")) != first


def test_a_pdf_that_is_gone_or_too_large_is_a_failure(tmp_path, monkeypatch):
    block = pdf(tmp_path, "gone.pdf")
    (tmp_path / "gone.pdf").unlink()
    assert document_of(block) == Failure("bad-document", "'./gone.pdf' cannot be read: No such file or directory")
    monkeypatch.setattr(documents, "LARGEST", 5)
    assert document_of(pdf(tmp_path, "large.pdf")) == Failure("bad-document", "'./large.pdf' is larger than 5e-06 MB")
