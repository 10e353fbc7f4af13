"""Output that is whole or not there: through links, with the modes that were there, and straight into pipes."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO

__all__ = ["write"]

Produce = Callable[[IO[bytes]], object]

_PREFIX = ".isodus-"


def write(target: str | os.PathLike[str], data: str | bytes | Produce) -> None:
    """Write text (as UTF-8), bytes, or what a function writes into the binary file that it is called with.

    A new file, or one with a single name, is replaced by a complete one with the same mode and owner. A file with
    several names, or in a folder that cannot be written into, is overwritten in place once its content is complete.
    Symbolic links stay, and their target is written. Pipes, devices and open descriptors (/dev/stdout, /dev/fd/5)
    receive the content as it comes. "-" is standard output.
    """
    path = os.fspath(target)
    produce = data if callable(data) else _writer(data)
    try:
        if path == "-":
            _to_standard_output(produce)
        elif (descriptor := _descriptor(path)) is not None or _is_stream(path):
            _into(path, descriptor, produce)
        else:
            _to_file(path, produce)
    except BrokenPipeError:
        raise
    except OSError as error:
        nameless = error.filename is None or os.path.basename(str(error.filename)).startswith(_PREFIX)
        if nameless and error.errno is not None:
            raise OSError(error.errno, error.strerror, path) from error
        raise


def _writer(data: str | bytes) -> Produce:
    content = data.encode("utf-8") if isinstance(data, str) else data
    return lambda file: file.write(content)


def _to_standard_output(produce: Produce) -> None:
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # replaced by an object that takes text only
        memory = io.BytesIO()
        produce(memory)
        sys.stdout.write(memory.getvalue().decode("utf-8"))
    elif isinstance(binary, io.RawIOBase):  # python -u: its writes may be short
        buffered = io.BufferedWriter(binary)
        try:
            produce(buffered)
        finally:
            buffered.detach()  # flushed, and not closed
    else:
        produce(binary)
    sys.stdout.flush()


def _descriptor(path: str) -> int | None:
    """The open descriptor that /dev/stdout, /dev/fd/5 or a link to one of them stands for, else None.

    Opening it by name would truncate a file that it leads to, and into which others may have written.
    """
    for _ in range(40):  # links; no system follows more
        folder = os.path.realpath(os.path.dirname(path))
        name = os.path.basename(path)
        if (folder == "/dev/fd" or re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder)) and name.isdecimal():
            return int(name)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _is_stream(path: str) -> bool:
    """Whether this is a pipe or a device."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _into(path: str, descriptor: int | None, produce: Produce) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    with os.fdopen(os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor), "wb") as file:
        produce(file)


def _to_file(name: str, produce: Produce) -> None:
    path = os.path.realpath(name)
    if os.path.isdir(path) or not os.path.basename(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    there = os.stat(path) if os.path.lexists(path) else None  # a link in a loop ends here
    if there is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    beside = None if there is not None and there.st_nlink > 1 else _beside(path, there)
    if beside is None:
        memory = io.BytesIO()
        produce(memory)
        _overwrite(path, memory.getvalue())
        return
    try:
        with beside:
            produce(beside)
        os.replace(beside.name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside.name)
        raise


def _beside(path: str, there: os.stat_result | None) -> IO[bytes] | None:
    """A new open file that is to take the place of the target; None where the target must be overwritten instead."""
    temporary = os.path.join(os.path.dirname(path), _PREFIX + secrets.token_hex(8))
    mode = 0o666 if there is None else 0o600
    try:
        file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
    except PermissionError:
        if there is None:
            raise
        return None
    if there is not None:
        try:
            if hasattr(os, "chown"):
                os.chown(temporary, there.st_uid, there.st_gid)
            os.chmod(temporary, stat.S_IMODE(there.st_mode))
        except PermissionError:  # a file of somebody else's
            file.close()
            os.unlink(temporary)
            return None
    return file


def _overwrite(path: str, content: bytes) -> None:
    """In place. What is longer than before goes first: where the disk has no room for it, nothing has changed."""
    with open(path, "r+b", buffering=0) as file:  # a buffer would be written again as the file is closed
        size = file.seek(0, os.SEEK_END)
        try:
            _write_all(file, content[size:])
        except BaseException:
            file.truncate(size)
            raise
        file.seek(0)
        _write_all(file, content[:size])
        file.truncate(len(content))


def _write_all(file: io.FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
