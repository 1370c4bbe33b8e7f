"""Pictures as model APIs take them."""

from __future__ import annotations

import pytest

from agentv.model.values.message import ImageBlock
from agentv.model.values.response import Failure
from agentv.targets.model_api.pictures import Picture, picture_of


def local(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    return ImageBlock(f"./{name}", str(tmp_path / name))


def test_a_data_url_is_taken_apart():
    assert picture_of(ImageBlock("data:image/gif;base64,R0lG\nODlh")) == Picture("image/gif", "R0lGODlh")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "is not a supported picture"), (b"%PDF-1.7", "is not a supported picture")],
)
def test_what_is_no_picture_is_not_sent(data, message, tmp_path):
    found = picture_of(local(tmp_path, "file.dat", data))
    assert isinstance(found, Failure)
    assert found.code == "bad-picture"
    assert message in found.message
    assert "./file.dat" in found.message
    assert not found.retryable


def test_a_huge_one_is_not_read(tmp_path):
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(50_000_001)
    found = picture_of(ImageBlock("huge.png", str(tmp_path / "huge.png")))
    assert isinstance(found, Failure)
    assert "larger than 50 MB" in found.message


@pytest.mark.parametrize("url", ["data:text/html,<b>", "data:image/png,raw", "data:image/png;base64,"])
def test_a_data_url_of_another_form_is_refused(url):
    assert isinstance(picture_of(ImageBlock(url)), Failure)
