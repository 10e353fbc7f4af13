"""Every kind of file gives the rows of one table, and each fault an error that names file, row and remedy."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from isodus import open_samples
from isodus.data import readers, samples_of, unpack
from isodus.data.unpack import needed

FRAME = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 3)), columns=["a", "b", "c"]).round(3)
TEXT = FRAME.to_csv(index=False)


def zipped(path, text=TEXT):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", text)


def zstd(path):
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(TEXT.encode())


def folder(path):
    path.mkdir()
    for k in range(3):
        FRAME[k * 100 : (k + 1) * 100].to_parquet(path / f"part-{k}.parquet")


def written(what):
    return lambda path: path.write_bytes(what if isinstance(what, bytes) else what.encode())


FILES = {
    "d.parquet": lambda path: FRAME.to_parquet(path, row_group_size=70),
    "folder": folder,
    "d.feather": lambda path: pa.feather.write_feather(pa.table(FRAME), str(path), compression="uncompressed"),
    "d.csv": written(TEXT),
    "windows.csv": written(TEXT.replace("\n", "\r\n")),
    "semicolons.csv": written(FRAME.to_csv(index=False, sep=";", decimal=",")),
    "tabs.tsv": written(FRAME.to_csv(index=False, sep="\t")),
    "spaces.txt": written(FRAME.to_csv(index=False, sep=" ")),
    "bars.txt": written(FRAME.to_csv(index=False, sep="|")),
    "index.csv": written(FRAME.to_csv()),
    "quoted.csv": written(TEXT.replace("a,b,c", '"a","b","c"')),
    "comments.csv": written("# made by hand\n\n# twice\n" + TEXT),
    "savetxt.txt": lambda path: np.savetxt(path, FRAME, header="a b c", fmt="%.3f"),
    "utf8mark.csv": written(b"\xef\xbb\xbf" + TEXT.encode()),
    "utf16.csv": written(TEXT.encode("utf-16")),
    "d.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "D.CSV.GZ": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "two members.gz": lambda p: p.write_bytes(gzip.compress(TEXT[:500].encode()) + gzip.compress(TEXT[500:].encode())),
    "d.csv.bz2": lambda path: path.write_bytes(bz2.compress(TEXT.encode())),
    "d.csv.xz": lambda path: path.write_bytes(lzma.compress(TEXT.encode())),
    "d.csv.zst": zstd,
    "d.zip": zipped,
    "no suffix": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
}
ARRAYS = {
    "d.npy": lambda path: np.save(path, FRAME.to_numpy()),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(FRAME.to_numpy())),
    "d.npz": lambda path: np.savez_compressed(path, X=FRAME.to_numpy()),
    "numbers.csv": written(FRAME.to_csv(index=False, header=False)),
    "numbered.csv": written(FRAME.to_csv(index=False, header=["0", "1", "2"])),
}


@pytest.mark.parametrize("name", [*FILES, *ARRAYS])
def test_kinds_of_files(name, tmp_path):
    (FILES | ARRAYS)[name](tmp_path / name)
    stream = open_samples(tmp_path / name)
    for reading in (1, 2):
        samples = samples_of(stream)
        np.testing.assert_allclose(samples.X, FRAME, atol=1e-12)
        assert stream.reads == reading
    expected = {"numbered.csv": ("0", "1", "2")}.get(name, ("x0", "x1", "x2") if name in ARRAYS else ("a", "b", "c"))
    assert samples.names == expected
    assert name not in str(stream) or f"read {reading} times" in str(stream)


def test_workbooks(tmp_path):
    pytest.importorskip("openpyxl")
    FRAME.to_excel(tmp_path / "d.xlsx", index=False)
    np.testing.assert_allclose(samples_of(open_samples(tmp_path / "d.xlsx")).X, FRAME)


def test_columns_and_options(tmp_path):
    FRAME.to_parquet(tmp_path / "d.parquet")
    (tmp_path / "d.csv").write_bytes("größe!b!c\n1,5!2!3\n2,5!4!9\n".encode("latin-1"))
    assert samples_of(open_samples(tmp_path / "d.parquet", columns=["c", "a"])).names == ("c", "a")
    options = {"encoding": "latin-1", "sep": "!", "decimal": ","}
    samples = samples_of(open_samples(tmp_path / "d.csv", csv=options))
    assert samples.names == ("größe", "b", "c")
    np.testing.assert_array_equal(samples.X, [[1.5, 2, 3], [2.5, 4, 9]])
    (tmp_path / "notes.csv").write_text("% made by hand\na,b\n1,2 % a note\n% another\n3,4\n")
    samples = samples_of(open_samples(tmp_path / "notes.csv", csv={"comment": "%"}))
    np.testing.assert_array_equal(samples.X, [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"columns 'z' are not in .*d.csv. It has 'größe', 'b', 'c'"):
        samples_of(open_samples(tmp_path / "d.csv", csv=options, columns=["b", "z"]))


class Pipe(io.RawIOBase):
    """Bytes that can be read once."""

    def __init__(self, content, name="a pipe"):
        self.content, self.name = io.BytesIO(content), name

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.content.readinto(buffer[:1000])


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_and_pipes(packed, monkeypatch, tmp_path):
    content = gzip.compress(TEXT.encode()) if packed else TEXT.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(content))))
    stream = open_samples("-")
    assert "standard input" in str(stream)
    for _ in range(2):
        np.testing.assert_allclose(samples_of(stream).X, FRAME, atol=1e-12)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
        writer.start()
        stream = open_samples(tmp_path / "pipe")
        writer.join()
        for _ in range(2):
            np.testing.assert_allclose(samples_of(stream).X, FRAME, atol=1e-12)


def test_open_files_stay_open_and_where_they_were(tmp_path):
    (tmp_path / "d.csv").write_text(TEXT)
    with open(tmp_path / "d.csv", "rb") as file:
        for _ in range(2):
            np.testing.assert_allclose(samples_of(open_samples(file)).X, FRAME, atol=1e-12)
            assert not file.closed
            file.seek(0)
    np.testing.assert_allclose(samples_of(open_samples(io.StringIO(TEXT))).X, FRAME, atol=1e-12)


def test_files_that_need_a_path(tmp_path):
    np.save(tmp_path / "d.npy", FRAME)
    with (
        open(tmp_path / "d.npy", "rb") as file,
        pytest.raises(ValueError, match=r"d.npy is a npy file.* Pass the path"),
    ):
        open_samples(file)


def test_labels_may_hold_what_begins_a_comment(tmp_path):
    (tmp_path / "d.csv").write_text("# by hand\na,b,label\n" + "".join(f"{i},{i * i},s#{i % 3}\n" for i in range(30)))
    samples = samples_of(open_samples(tmp_path / "d.csv"), groups="label")
    assert samples.names == ("a", "b")
    np.testing.assert_array_equal(samples.codes, np.arange(30) % 3)


def test_a_pipe_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(unpack, "MOST_SPOOLED", 2000)
    with pytest.raises(ValueError, match="can be read once, so that isodus copies it to .* longer than .* Save it"):
        open_samples(Pipe(TEXT.encode()))


# ---------------------------------------------------------------- faults


def cut(make, share=0.6):
    def written(path):
        make(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return written


RANDOM = np.random.default_rng(1).standard_normal((20_000, 2))
LONG = pd.DataFrame(RANDOM, columns=["a", "b"]).to_csv(index=False).encode()
TRUNCATED = {
    "d.csv.gz": cut(lambda path: path.write_bytes(gzip.compress(LONG))),
    "d.csv.bz2": cut(lambda path: path.write_bytes(bz2.compress(LONG))),
    "d.csv.xz": cut(lambda path: path.write_bytes(lzma.compress(LONG))),
    "d.csv.zst": cut(zstd),
    "d.zip": cut(zipped),
    "d.npy": cut(lambda path: np.save(path, RANDOM)),
    "d.npz": cut(lambda path: np.savez(path, RANDOM)),
    "d.parquet": cut(lambda path: FRAME.to_parquet(path)),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_truncated_files(name, tmp_path):
    TRUNCATED[name](tmp_path / name)
    with pytest.raises(ValueError, match=rf"(?s){name}.*truncated.*Get"):
        samples_of(open_samples(tmp_path / name))


def test_damaged_bytes(tmp_path):
    packed = bytearray(gzip.compress(LONG))
    packed[len(packed) // 2] ^= 255
    (tmp_path / "d.gz").write_bytes(packed)
    with pytest.raises(ValueError, match=r"d.gz cannot be read after row [\d,]+: .* damaged"):
        samples_of(open_samples(tmp_path / "d.gz"))


def test_an_archive_that_asks_for_too_much(tmp_path, monkeypatch):
    """The sizes are read from the headers: nothing is unpacked."""
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as out,
    ):
        np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (450_000_000, 2)})
        out.write(bytes(1000))
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("was unpacked"))
    with pytest.raises(ValueError, match=r"X.npy in .*bomb.npz would unpack to 6.7 GiB, and at most 1.0 GiB"):
        samples_of(open_samples(path))


def test_the_limit_is_also_that_of_the_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MOST_UNPACKED", 5000)
    np.savez_compressed(tmp_path / "d.npz", np.zeros((400, 2)))
    with pytest.raises(ValueError, match=r"6.38 KiB, and at most 4.88 KiB"):
        samples_of(open_samples(tmp_path / "d.npz"))


def test_lines_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "_MOST_LINE", 1 << 20)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1" * (3 << 20)))
    with pytest.raises(ValueError, match=r"d.csv.gz has 1 MiB without an end of line"):
        samples_of(open_samples(tmp_path / "d.csv.gz"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,x\n5,6\n", r"Column 'b' holds strings \(row 1: 'x'\)"),
        ("a,b\n1,2\n3,\n5,6\n", r"Column 'b' contains NaN in row 1"),
        ("a,b\n1,2\n3\n5,6\n", r"Column 'b' contains NaN in row 1"),
        ("a,b\n1,2\n3,4,5\n5,6\n", r"Expected 2 fields in line 3, saw 3.*damaged"),
        ("t,a\n2024-01-31 10:00,2\n2024-01-31 11:00,3\n", r"'t' holds dates as strings .*dependence='auto'"),
        ("a,a\n1,2\n3,4\n", r"More than one column is called 'a'"),
        ("", r"d.csv has no rows"),
        ("a,b\n", r"d.csv has no rows"),
        (b"\x00\x01\x02\x03\x00\x00", "no text that open_samples reads"),
        ("a,b\n1,2\n3,4\n".encode("utf-16-le"), r"csv=\{'encoding': 'utf-16-le'\}"),
        ("größe,b\n1,2\n2,3\n".encode("latin-1"), r"d.csv cannot be read after row 0: 'utf-8' codec"),
    ],
)
def test_files_that_are_errors(content, message, tmp_path):
    written(content)(tmp_path / "d.csv")
    with pytest.raises(ValueError, match=message):
        samples_of(open_samples(tmp_path / "d.csv"))


def test_archives_of_several_files(tmp_path):
    np.savez(tmp_path / "d.npz", X=RANDOM, w=RANDOM[:, 0])
    with pytest.raises(ValueError, match=r"d.npz holds 2 files \(X.npy, w.npy\), and open_samples reads one"):
        open_samples(tmp_path / "d.npz")


def test_other_shapes(tmp_path):
    np.save(tmp_path / "d.npy", RANDOM[:, 0])
    with pytest.raises(ValueError, match=r"d.npy holds an array of shape \(20000,\). Save one of shape"):
        samples_of(open_samples(tmp_path / "d.npy"))


def test_sources_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none.csv"):
        open_samples(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="not ndarray. Pass tables in memory to fit"):
        open_samples(RANDOM)
    with pytest.raises(TypeError, match="not generator. .* and generators as functions"):
        open_samples(RANDOM for _ in range(3))


@pytest.mark.parametrize(
    ("name", "library"), [("d.parquet", "pyarrow"), ("d.csv.zst", "pyarrow"), ("d.xlsx", "openpyxl")]
)
def test_libraries_that_are_not_there(name, library, tmp_path, monkeypatch):
    if name == "d.xlsx":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("xl/workbook.xml", "")
    else:
        FILES[name](tmp_path / name)
    for module in (library, f"{library}.dataset"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name} is .*, which {library} reads. Install it: pip install {library}."):
        samples_of(open_samples(tmp_path / name))
    with pytest.raises(ImportError):
        needed(library, "it")
