"""R's huge (Debian: r-base-core, r-cran-huge), as functions of samples that give back a graph and R's own seconds."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SCRIPT = """
a <- commandArgs(TRUE)
suppressMessages(library(huge))
set.seed(0)
X <- matrix(readBin(a[1], "double", as.integer(a[2]) * as.integer(a[3])), as.integer(a[2]), as.integer(a[3]))
own <- function() sum(proc.time()[1:2])
t <- own()
graph <- {WAY}
cat(own() - t)
writeBin(as.integer(as.matrix(graph) != 0), a[4], size = 1L)
"""
TOLD = 'huge(X, lambda = {}, method = "mb", sym = "and", verbose = FALSE)$path[[1]]'
ROTATED = 'huge.select(huge(X, method = "mb", sym = "and", verbose = FALSE), criterion = "ric", verbose = FALSE)$refit'
EBIC = 'huge.select(huge(X, method = "glasso", verbose = FALSE), criterion = "ebic", verbose = FALSE)$refit'


def there():
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(huge)"], capture_output=True).returncode == 0


def version():
    """Of huge, where it is there."""
    asked = ["Rscript", "-e", 'cat(as.character(packageVersion("huge")))']
    return subprocess.run(asked, capture_output=True, text=True).stdout if there() else ""


def run(way, X, limit=None):
    """The graph, (p, p) of bool, and seconds of R's processor time; way: R's code for it, with samples in X."""
    with tempfile.TemporaryDirectory() as folder:
        script, data, out = (Path(folder, name) for name in ("huge.R", "X", "graph"))
        script.write_text(SCRIPT.replace("{WAY}", way))
        data.write_bytes(X.T.astype("<f8").tobytes())
        command = ["Rscript", str(script), str(data), *map(str, X.shape), str(out)]
        taken = float(subprocess.run(command, capture_output=True, check=True, text=True, timeout=limit).stdout)
        return np.frombuffer(out.read_bytes(), np.int8).reshape((X.shape[1],) * 2) != 0, taken


def told(X, l1):
    """A lasso of every variable on the others; an edge is one that both ends keep."""
    return run(TOLD.format(repr(float(l1))), X)
