"""What is written goes where it was asked to: through links, into pipes and devices, with the mode that was there."""

import json
import os
import stat
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from io import StringIO

import pytest
from processes import isodus

from isodus import PolynomialModel, io

MODEL = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0})
pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    MODEL.save(folder / "m.json")
    return folder / "m.json"


@pytest.fixture
def null(tmp_path):
    """A null device of its own, in a folder of its own."""
    path = tmp_path / "devices" / "null"
    path.parent.mkdir()
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        path.write_bytes(b"nothing")
    except OSError:
        pytest.skip("no device can be made here")
    return path


def test_a_device_stays_a_device(null):
    before = os.stat(null)
    MODEL.save(null)
    after = os.stat(null)
    assert (after.st_mode, after.st_ino, after.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    assert left(null.parent) == ["null"]


@pytest.mark.parametrize(
    "command", [("sample", "{m}", "-n", "9"), ("report", "{m}"), ("plot", "{m}")], ids=lambda command: command[0]
)
def test_commands_write_into_a_device(null, model, command):
    done = isodus(*(word.format(m=model) for word in command), "-o", null)
    assert done.returncode == 0, done.stderr
    assert stat.S_ISCHR(os.stat(null).st_mode)
    assert left(null.parent) == ["null"]


def test_fit_writes_no_terms_beside_a_device(null, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in MODEL.sample(200, rng=0)))
    done = isodus("fit", data, "--degree", "2", "-o", null)
    assert done.returncode == 0, done.stderr
    assert stat.S_ISCHR(os.stat(null).st_mode)
    assert left(null.parent) == ["null"]


@pytest.mark.parametrize("binary", [False, True])
def test_a_pipe_gets_it_all(tmp_path, binary):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with io.writing(pipe, binary) as f:
        f.write(b"x" * 200_000 if binary else "é" * 100_000)
    reader.join(10)
    assert got == [b"x" * 200_000 if binary else ("é" * 100_000).encode()]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_links_stay_and_what_they_lead_to_is_written(tmp_path):
    (tmp_path / "inner").mkdir()
    target, link, second = tmp_path / "inner" / "m.json", tmp_path / "link.json", tmp_path / "second.json"
    link.symlink_to("inner/m.json")
    second.symlink_to("link.json")
    io.write_text(second, "new")  # of a file that is not there yet
    assert link.is_symlink()
    assert second.is_symlink()
    assert target.read_text() == "new"
    io.write_text(link, "newer")
    assert (second.read_text(), os.readlink(link)) == ("newer", "inner/m.json")
    assert left(tmp_path) == ["inner", "link.json", "second.json"]
    assert left(tmp_path / "inner") == ["m.json"]


def test_a_file_with_two_names_has_two_names_still(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("something that is longer")
    os.link(first, second)
    for text in ("short", "long" * 9999):
        io.write_text(first, text)
        assert second.read_text() == text
        assert os.stat(first).st_nlink == 2
    assert left(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes(tmp_path, umask):
    """Those of files that are there stay; new ones have what the umask of the process leaves, which is not touched."""
    kept = tmp_path / "kept"
    kept.write_text("before")
    kept.chmod(0o640)
    old = os.umask(umask)
    try:
        io.write_text(kept, "after")
        io.write_text(tmp_path / "new", "new")
        assert os.umask(umask) == umask
    finally:
        os.umask(old)
    assert (kept.read_text(), mode(kept)) == ("after", 0o640)
    assert mode(tmp_path / "new") == 0o666 & ~umask


def test_the_umask_is_never_set(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to the process, with all its threads"))
    io.write_text(tmp_path / "x", "x")


@pytest.mark.parametrize("kind", ["new", "there", "two names", "link"])
def test_what_fails_half_way_changes_nothing(tmp_path, kind):
    path = tmp_path / "x"
    if kind != "new":
        path.write_text("before")
    if kind == "two names":
        os.link(path, tmp_path / "y")
    if kind == "link":
        (tmp_path / "y").symlink_to("x")
        path = tmp_path / "y"
    before = left(tmp_path)
    with pytest.raises(ZeroDivisionError), io.writing(path) as f:
        f.write(f"half {1 / 0}")
    assert left(tmp_path) == before
    assert kind == "new" or path.read_text() == "before"


@pytest.mark.parametrize(("room", "size"), [(10_000, 100_000), (65_000, 200_000), (700_000, 3_000_000)])
def test_a_disk_without_room_leaves_a_file_with_two_names_as_it_was(tmp_path, room, size):
    """A limit on the size of files stands for a full disk."""
    path = tmp_path / "x"
    path.write_text("before")
    os.link(path, tmp_path / "y")
    lines = (
        "import resource, signal",
        "from isodus import io",
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))",
        f"io.write_text({str(path)!r}, 'x' * {size})",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert "cannot be written: File too large" in done.stderr
    assert (path.read_text(), left(tmp_path)) == ("before", ["x", "y"])


def test_folders_sockets_and_files_to_read_alone_are_errors(tmp_path):
    with pytest.raises(ValueError, match="is a folder. Name a file"):
        io.write_text(tmp_path, "x")
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        io.write_text(loop, "x")
    with pytest.raises(OSError, match="x"):
        io.write_text(tmp_path / "none" / "x", "x")
    assert left(tmp_path) == ["loop"]


def test_standard_output(model, tmp_path):
    """-o - of each command; what is said goes elsewhere."""
    drawn = isodus("sample", model, "-n", "50", "--seed", "0", "-o", "-")
    assert len(drawn.stdout.decode().splitlines()) == 51
    data = tmp_path / "d.csv"
    data.write_bytes(drawn.stdout)
    fitted = isodus("fit", data, "--degree", "2", "-o", "-")
    assert json.loads(fitted.stdout)["format"] == "isodus-model"
    assert b"learned by" in fitted.stderr
    page = isodus("report", model, "-o", "-")
    assert page.stdout.lower().startswith(b"<!doctype html>")
    picture = isodus("plot", model, "-o", "-")
    assert picture.stdout.startswith(b"\x89PNG")
    assert left(tmp_path) == ["d.csv", "model"]
    assert left(model.parent) == ["m.json"]
    for command in (("sample", model), ("report", model), ("plot", model), ("fit", data, "--degree", "2")):
        done = isodus(*command, "-o", "-", "--json")
        assert done.returncode == 1
        assert b"both write to standard output" in done.stderr
    done = isodus("fit", data, "-o", "-", "--report", "-")
    assert b"-o and --report both write to" in done.stderr


def test_standard_output_that_is_text_or_closed(tmp_path, monkeypatch):
    said = StringIO()
    with redirect_stdout(said):
        MODEL.save("-")
        with pytest.raises(OSError, match="takes text only"), io.writing("-", binary=True) as f:
            f.write(b"\xff\xfe")
    assert json.loads(said.getvalue())["format"] == "isodus-model"
    (tmp_path / "x").write_text("before")
    os.link(tmp_path / "x", tmp_path / "y")
    monkeypatch.setattr(sys, "stdout", None)
    io.write_text(tmp_path / "x", "after")
    with pytest.raises(OSError, match="- cannot be written: standard output is closed"):
        io.write_text("-", "text")
    assert (tmp_path / "y").read_text() == "after"


def test_two_outputs_of_one_name_are_refused(tmp_path):
    data = tmp_path / "d.csv"
    MODEL.save(tmp_path / "m.json")
    data.write_bytes(isodus("sample", tmp_path / "m.json", "-n", "50", "-o", "-").stdout)
    (tmp_path / "link.html").symlink_to(tmp_path / "x.html")
    for report in ("x.html", "link.html"):
        done = isodus("fit", data, "-o", tmp_path / "x.html", "--report", tmp_path / report)
        assert done.returncode == 1
        assert b"the report would replace the model" in done.stderr
    assert left(tmp_path) == ["d.csv", "link.html", "m.json"]


def test_standard_output_into_a_file_is_added_to_not_replaced(model, tmp_path):
    path = tmp_path / "log"
    with open(path, "ab") as log:
        log.write(b"first\n")
        log.flush()
        for _ in range(2):
            command = [sys.executable, "-m", "isodus", "sample", model, "-n", "3", "-o", "-"]
            subprocess.run(command, stdout=log, stderr=subprocess.DEVNULL, check=True)
    assert path.read_text().splitlines()[0] == "first"
    assert len(path.read_text().splitlines()) == 9


def test_what_cannot_be_written_is_found_out_before_the_work(model, tmp_path):
    (tmp_path / "inner").mkdir()
    for name, target in (("a.csv", "inner/nowhere/a.csv"), ("b.csv", "b.csv")):
        (tmp_path / name).symlink_to(target)
        done = isodus("sample", model, "-o", tmp_path / name)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
    assert left(tmp_path) == ["a.csv", "b.csv", "inner", "model"]
    assert left(tmp_path / "inner") == []


def test_a_file_in_a_folder_that_cannot_be_written_into(model, tmp_path):
    """By its own name, or by a link: the file, or the folder that the link leads to, can be written."""
    if os.geteuid() == 0:
        pytest.skip("to root no mode is a lock")
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "file.csv").write_text("before")
    (locked / "link.csv").symlink_to(tmp_path / "new.csv")
    locked.chmod(0o555)
    for name in ("file.csv", "link.csv"):
        done = isodus("sample", model, "-n", "5", "-o", locked / name)
        assert done.returncode == 0, done.stderr
    assert len((locked / "file.csv").read_text().splitlines()) == 6
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 6
    assert b"cannot be written into" in isodus("sample", model, "-o", locked / "other.csv").stderr


def test_a_name_that_was_not_given_is_not_written_through_a_link(model):
    away = model.with_name("away.html")
    model.with_suffix(".html").symlink_to(away)
    done = isodus("report", model)
    assert b"is there already" in done.stderr
    assert not away.exists()
