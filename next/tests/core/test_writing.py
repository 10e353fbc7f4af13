import contextlib
import io
import os
import stat
import subprocess
import sys
import threading

import pytest

from isodus._core.writing import write

OLD, NEW = b"old content\n", "neü\n" * 1000


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def folder(tmp_path):
    """A folder; what is in it at the end is what the test says, and no temporary file."""
    yield tmp_path
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".isodus")]


@pytest.mark.parametrize("data", [NEW, NEW.encode(), lambda file: file.write(NEW.encode())])
def test_new_files(folder, data):
    umask = os.umask(0o027)
    try:
        write(folder / "new", data)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(umask)
    assert (folder / "new").read_bytes() == NEW.encode()
    assert mode(folder / "new") == 0o640


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o666, 0o755])
def test_modes_are_kept_and_the_file_is_replaced(folder, bits):
    path = folder / "a"
    path.write_bytes(OLD)
    os.chmod(path, bits)
    with open(path, "rb") as reader:
        write(path, NEW)
        assert reader.read() == OLD  # who reads it goes on reading what was there
    assert path.read_text() == NEW
    assert mode(path) == bits


def test_links(folder):
    (folder / "a").write_bytes(OLD)
    (folder / "deep").mkdir()
    (folder / "deep" / "b").symlink_to("../a")
    (folder / "c").symlink_to("deep/b")
    write(folder / "c", NEW)
    assert (folder / "c").is_symlink()
    assert (folder / "deep" / "b").is_symlink()
    assert (folder / "a").read_text() == NEW
    (folder / "dangling").symlink_to("not yet")
    write(folder / "dangling", NEW)
    assert (folder / "not yet").read_text() == NEW
    (folder / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        write(folder / "loop", NEW)


@pytest.mark.parametrize("content", ["x", NEW, ""])
def test_hard_links(folder, content):
    (folder / "a").write_bytes(OLD)
    os.link(folder / "a", folder / "b")
    write(folder / "b", content)
    assert (folder / "a").read_text() == content
    assert os.path.samefile(folder / "a", folder / "b")


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_function_that_fails(folder, links, error):
    (folder / "a").write_bytes(OLD)
    if links == 2:
        os.link(folder / "a", folder / "b")

    def fail(file):
        file.write(NEW.encode())
        raise error

    for name in ("a", "new"):
        with pytest.raises(error):
            write(folder / name, fail)
    assert (folder / "a").read_bytes() == OLD
    assert not (folder / "new").exists()


def full_disk(folder, names, limit):
    """Write a megabyte to each name where files must not grow beyond the limit."""
    code = f"""
import resource
from isodus._core.writing import write
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
for name in {names}:
    try:
        write(name, b"x" * 1_000_000)
    except OSError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout


def test_a_full_disk(folder):
    (folder / "a").write_bytes(OLD)
    (folder / "b").write_bytes(OLD)
    os.link(folder / "b", folder / "c")
    said = full_disk(folder, ["a", "b", "new"], 100_000)
    assert said.count("File too large") == 3
    assert all(f"'{name}'" in said for name in ("a", "b", "new"))
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes() == (folder / "c").read_bytes() == OLD
    assert not (folder / "new").exists()


def test_pipes_receive_content_as_it_comes(folder):
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("pipe")
    first, received = threading.Event(), []

    def read():
        with open(folder / "pipe", "rb", buffering=0) as pipe:
            received.append(pipe.read(3))
            first.set()
            received.append(pipe.read())

    def produce(file):
        file.write(b"one")
        file.flush()
        assert first.wait(10)  # read before the rest is written
        file.write(b"two")

    reader = threading.Thread(target=read)
    reader.start()
    write(folder / "link", produce)
    reader.join()
    assert received == [b"one", b"two"]
    assert stat.S_ISFIFO(os.stat(folder / "pipe").st_mode)


def test_devices():
    write(os.devnull, NEW)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_descriptors_are_written_where_they_are(folder):
    with open(folder / "log", "w+b") as log:
        log.write(b"before\n")
        log.flush()
        write(f"/dev/fd/{log.fileno()}", "in\n")
        (folder / "link").symlink_to(f"/dev/fd/{log.fileno()}")
        write(folder / "link", "again\n")
    assert (folder / "log").read_bytes() == b"before\nin\nagain\n"


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_into_a_file(folder, name):
    code = f"""
from isodus._core.writing import write
print("before")
write({name!r}, "content\\n")
print("after")
"""
    with open(folder / "log", "wb") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert (folder / "log").read_text() == "before\ncontent\nafter\n"


def test_standard_output_that_takes_text_only():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        write("-", NEW)
    assert out.getvalue() == NEW


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_ends_early(unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code = 'from isodus._core.writing import write; write("-", b"x" * 10**6)'
    command = [sys.executable, "-c", code]
    assert len(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) == 10**6
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.read(1) == b"x"
        run.stdout.close()
        assert b"BrokenPipeError" in run.stderr.read()


def test_what_is_no_place_for_a_file(folder):
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        write(folder, NEW)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write(folder / "nowhere" / "a", NEW)
    with pytest.raises(IsADirectoryError):
        write(f"{folder}/new/", NEW)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_permissions(folder):
    (folder / "a").write_bytes(OLD)
    os.chmod(folder / "a", 0o400)
    with pytest.raises(PermissionError, match="a'"):
        write(folder / "a", NEW)
    os.chmod(folder / "a", 0o600)
    os.chmod(folder, 0o500)
    try:
        write(folder / "a", NEW)
        with pytest.raises(PermissionError, match="new'"):
            write(folder / "new", NEW)
    finally:
        os.chmod(folder, 0o700)
    assert (folder / "a").read_text() == NEW
