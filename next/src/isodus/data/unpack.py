"""Bytes of files and pipes: opened as often as they are read, unpacked as they come."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

__all__ = ["FAULTS", "Open", "again", "kind_of", "member_of", "needed", "show_size", "unpacked"]

Open = Callable[[], Any]

FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What is raised where packed bytes are damaged or end early."""
MOST_SPOOLED = 1 << 35
"""Bytes of a pipe that are copied to disk at most."""
_MOST_LINE = 1 << 26  # bytes without an end of line, beyond which they are no table
_KINDS = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}


def kind_of(file: BinaryIO) -> str:
    """What the first bytes of a file say that it is; "" for text. The file is left where it was."""
    place = file.tell()
    first = file.read(8)
    file.seek(place)
    return next((kind for magic, kind in _KINDS.items() if first.startswith(magic)), "")


def member_of(file: Any, name: str) -> str:
    """The one table of a zip archive: an array, a file of text, or what a workbook has."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [info.filename for info in archive.infolist() if not info.is_dir()]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name} is damaged or truncated: {error}. Get the file anew.") from error
    if "xl/workbook.xml" in members:
        return "xl/workbook.xml"
    members = [member for member in members if not member.startswith("__MACOSX/")]
    if len(members) != 1:
        shown = ", ".join(members[:5]) or "none"
        raise ValueError(f"{name} holds {len(members)} files ({shown}), and open_samples reads one. Unpack it.")
    return members[0]


def unpacked(file: BinaryIO, kind: str, name: str, member: str = "") -> BinaryIO:
    """The bytes of a file as they are unpacked."""
    if kind in ("gzip", "bz2", "xz"):
        open_packed: Callable[..., Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}[kind]  # type: ignore
        packed = open_packed(file, "rb")
    elif kind == "zstd":
        packed = needed("pyarrow", name).CompressedInputStream(file, "zstd")
    elif kind == "zip":
        packed = zipfile.ZipFile(file).open(member)  # noqa: SIM115
    else:
        packed = file
    return io.BufferedReader(_Lines(packed, file, name), 1 << 18)


class _Lines(io.RawIOBase):
    """Unpacked bytes that must have ends of lines, so that what is read as one line fits into memory."""

    def __init__(self, packed: Any, file: Any, name: str) -> None:
        self._packed, self._file, self._name, self._since = packed, file, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._packed.read(len(buffer))
        buffer[: len(data)] = data
        end = data.rfind(b"\n")
        self._since = self._since + len(data) if end < 0 else len(data) - end
        if self._since > _MOST_LINE:
            raise ValueError(f"{self._name} has {show_size(_MOST_LINE)} without an end of line. It is no CSV file.")
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
            self._file.close()
        super().close()


def again(source: Any, name: str) -> Open:
    """How to open a file anew that is open already: by going back, or by a copy of a pipe on disk."""
    source = getattr(source, "buffer", source)
    if isinstance(source, io.StringIO):
        source = io.BytesIO(source.getvalue().encode())
    if source.seekable():
        place = source.tell()

        def back() -> Any:
            source.seek(place)
            return _Kept(source)

        return back
    copy = tempfile.NamedTemporaryFile(prefix="isodus-")  # noqa: SIM115  is gone with the last reader
    left = min(MOST_SPOOLED, shutil.disk_usage(copy.name).free // 2)
    while part := source.read(1 << 20):
        left -= len(part)
        if left < 0:
            raise ValueError(
                f"{name} can be read once, so that isodus copies it to {tempfile.gettempdir()}, and it is longer than "
                f"{show_size(copy.tell())}: {show_size(MOST_SPOOLED)}, or half of what is free there. Save it as a "
                "file and pass its path."
            )
        copy.write(part)
    copy.flush()

    def opened(copy: Any = copy) -> Any:
        return open(copy.name, "rb")

    return opened


class _Kept(io.RawIOBase):
    """A user's open file, which stays open."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def needed(module: str, what: str) -> Any:
    """A library that is not always there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(f"{what}, which {library} reads. Install it: pip install {library}.") from error


def show_size(size: float) -> str:
    """Such as 6.7 GiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"
