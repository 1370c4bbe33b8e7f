"""PDFs as model APIs take them."""

from __future__ import annotations

from agentv.model.values.response import Failure
from agentv.targets.model_api import content_parts
from agentv.targets.model_api.content_parts import document_of
from doubles.documents import pdf


def test_a_pdf_that_is_gone_or_too_large_is_a_failure(tmp_path, monkeypatch):
    block = pdf(tmp_path, "gone.pdf")
    (tmp_path / "gone.pdf").unlink()
    assert document_of(block) == Failure("bad-document", "'./gone.pdf' cannot be read: No such file or directory")
    monkeypatch.setattr(content_parts, "LARGEST_PDF", 5)
    assert document_of(pdf(tmp_path, "large.pdf")) == Failure("bad-document", "'./large.pdf' is larger than 5e-06 MB")
