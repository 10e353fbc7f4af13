"""Files: JSON read with care, anything written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["MOST_BYTES", "read_json", "write_text", "writing"]

MOST_BYTES = 1 << 32  # of a file that is read whole


def read_json(path: str | os.PathLike[str], what: str, kind: str) -> dict[str, Any]:
    """The object in a JSON file whose "format" is `kind`; what: in words, for errors."""
    size = Path(path).stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"{path} is no {what}: it has {size / 1e9:,.1f} GB, and {MOST_BYTES / 1e9:,.1f} is the most")
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or brackets without end
        raise ValueError(f"{path} is no {what}: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise ValueError(f'{path} is no {what}: it lacks "format": "{kind}"')
    return content


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; no half-written one is ever seen."""
    with writing(path) as f:
        f.write(text)


@contextmanager
def writing(path: str | os.PathLike[str], binary: bool = False) -> Iterator[IO[Any]]:
    """A temporary file beside this path, open to write to; it takes its place once all has been written."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8", newline="") as f:
            yield f
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None and not isinstance(error, BrokenPipeError):
            raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
        raise
