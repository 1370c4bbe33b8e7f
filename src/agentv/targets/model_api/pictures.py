"""Pictures of messages, as model APIs take them: a URL, or a media type and base64."""

from __future__ import annotations

import base64
import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agentv.model.values.message import ImageBlock
from agentv.model.values.pictures import is_none, media_type_in
from agentv.model.values.response import Failure

LARGEST = 50_000_000
"""Bytes of a picture that is read. Every API refuses less than that, in its own words."""

_DATA_URL = re.compile(r"data:(?P<type>image/[\w.+-]+);base64,(?P<base64>[A-Za-z0-9+/=\s]+)")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture by its bytes: `media_type` such as `image/png`, and the bytes as `base64`."""

    media_type: str
    base64: str

    @property
    def data_url(self) -> str:
        """Media type and bytes as a data URL, which OpenAI's API accepts."""
        return f"data:{self.media_type};base64,{self.base64}"


def picture_of(block: ImageBlock) -> Picture | str | Failure:
    """A picture's bytes, its URL where it lies on the web, or why it cannot be sent (code `bad-picture`)."""
    if block.path is not None:
        return _local(block.path, block.value)
    if not block.value.startswith("data:"):
        return block.value
    found = _DATA_URL.fullmatch(block.value)
    if found is None:
        return Failure("bad-picture", "a data: URL of a picture must have the form data:image/TYPE;base64,…")
    return Picture(found["type"], "".join(found["base64"].split()))


def _local(path: str, written: str) -> Picture | Failure:
    try:
        return _read(path)
    except OSError as error:
        return Failure("bad-picture", f"the picture '{written}' cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Failure("bad-picture", f"'{written}' {error}")


@lru_cache(maxsize=32)
def _read(path: str) -> Picture:
    """A file as a picture, by how it begins and not by its name. Read once, since many cases show the same one.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no picture, or too large; the text begins with a verb.
    """
    file = Path(path)
    if file.stat().st_size > LARGEST:
        raise ValueError(f"is larger than {LARGEST / 1_000_000:g} MB")
    data = file.read_bytes()
    kind = media_type_in(data) or mimetypes.guess_type(path)[0] or ""
    if is_none(path, data) or not kind.startswith("image/"):
        raise ValueError("is not a supported picture: all model APIs accept PNG, JPEG, GIF and WebP")
    return Picture(kind, base64.b64encode(data).decode())
