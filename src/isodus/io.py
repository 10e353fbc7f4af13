"""Files: JSON read with care; output that is written whole or not at all, through links and into pipes."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

__all__ = ["MOST_BYTES", "STDOUT", "check_writable", "is_stdout", "is_stream", "read_json", "write_text", "writing"]

STDOUT = Path("-")  # as the name of an output

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
    """Write a text file as `writing` does."""
    with writing(path) as f:
        f.write(text)


@contextmanager
def writing(path: str | os.PathLike[str], binary: bool = False) -> Iterator[IO[Any]]:
    """An open file, whose content goes to this path once the block ends without an error.

    A new file, or one with a single name, is replaced by a complete one of the same mode and owner. A file with
    several names, or in a folder that cannot be written into, is overwritten in place. Symbolic links stay, and their
    target is written. Pipes and devices receive the content as it is. "-" is standard output.
    """
    path = Path(path)
    try:
        temporary = None if is_stream(path) else _beside(Path(os.path.realpath(path)))
    except OSError as error:
        raise _named(error, path) from None
    try:
        with TemporaryFile() if temporary is None else open(temporary, "wb") as raw:
            text = None if binary else TextIOWrapper(raw, encoding="utf-8", newline="")
            yield text or raw
            if text:
                text.detach()  # else it would close `raw`
            raw.flush()
            if temporary is None:
                raw.seek(0)
                _copy(raw, path)
        if temporary is not None:
            os.replace(temporary, os.path.realpath(path))
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None and not isinstance(error, BrokenPipeError):
            raise _named(error, path) from error
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error that `writing` would raise before its block; nothing is changed."""
    path = Path(path)
    if not is_stream(path) and (temporary := _beside(Path(os.path.realpath(path)))):
        temporary.unlink()


def is_stream(path: Path) -> bool:
    """Whether this is standard output, a pipe or a device, where nothing is replaced and no ending names a format."""
    if path == STDOUT or _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def is_stdout(path: Path) -> bool:
    """Whether this is standard output, by whatever name."""
    return path == STDOUT or _descriptor(path) == 1


def _named(error: OSError, path: Path) -> OSError:
    return type(error)(f"{path} cannot be written: {error.strerror or error}")


def _beside(target: Path) -> Path | None:
    """An empty file that is to take the place of the target; None where the target must be overwritten instead."""
    if target.is_dir():
        raise ValueError(f"{target} is a folder. Name a file")
    there = os.stat(target) if os.path.lexists(target) else None  # a link in a loop fails here
    if there is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if there is not None and there.st_nlink > 1:
        return None
    temporary = target.with_name(f".isodus-{secrets.token_hex(8)}")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600))
    except PermissionError:
        if there is None:
            raise
        return None
    if there is not None:
        try:
            if hasattr(os, "chown"):
                os.chown(temporary, there.st_uid, there.st_gid)
            os.chmod(temporary, stat.S_IMODE(there.st_mode))
        except PermissionError:  # a file of somebody else's, open to a group
            temporary.unlink()
            return None
    return temporary


def _descriptor(path: Path) -> int | None:
    """Which open descriptor /dev/stdout, /dev/fd/5 or a link to one of them is.

    To open it by name would truncate a file that it leads to, and into which others may have written.
    """
    for _ in range(40):  # links; no system follows more
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, os.readlink(path))
    return None


def _copy(content: IO[bytes], path: Path) -> None:
    """Into standard output, a pipe, a device, or over a file, in place."""
    if sys.stdout is not None:  # closed by the caller
        sys.stdout.flush()
    if path == STDOUT:
        _to_stdout(content)
        return
    descriptor = _descriptor(path)
    if descriptor is not None or is_stream(path):
        handle = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
        with os.fdopen(handle, "wb") as f:
            shutil.copyfileobj(content, f)
        return
    handle = os.open(path, os.O_WRONLY)  # no buffer, of which the rest would be written when the file is closed
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        try:  # what is longer first: where the disk has no room for it, nothing has changed
            content.seek(size)
            _write_all(handle, content)
        except OSError:
            os.ftruncate(handle, size)
            raise
        content.seek(0)
        os.lseek(handle, 0, os.SEEK_SET)
        _write_all(handle, content, size)
        os.ftruncate(handle, os.fstat(content.fileno()).st_size)
    finally:
        os.close(handle)


def _to_stdout(content: IO[bytes]) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    if hasattr(sys.stdout, "buffer"):
        shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:  # a text stream in its place, as in a notebook
        sys.stdout.write(content.read().decode("utf-8"))
    except UnicodeDecodeError:
        raise OSError(errno.EINVAL, "standard output takes text only here; name a file") from None


def _write_all(handle: int, content: IO[bytes], most: int | None = None) -> None:
    """The rest of the content, or at most so many bytes, to a descriptor."""
    left = most
    while chunk := content.read(1 << 20 if left is None else min(left, 1 << 20)):
        view = memoryview(chunk)
        while view:
            view = view[os.write(handle, view) :]
        left = None if left is None else left - len(chunk)
