"""Trace one default fit: which files it enters, in which order, and the calls between them.

Run in this tree as ``PYTHONPATH=src python docs/trace.py``. It prints the files and writes `docs/trace.svg`, or the
file that is its argument. It takes a fresh process, as what an earlier fit has cached is not called again.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import isodus
from isodus import PseudoLikelihood
from isodus.datasets import paper_pair

PACKAGE = str(Path(isodus.__file__).parent) + "/"

# The rooms a fit passes, in the order in which they may import from one another, and the files in each, as drawn.
ROOMS = {
    "_core": [["checks", "threads", "progress"]],
    "axes": [["quadrature", "base", "smooth"], ["choose", "polynomial", "line"]],
    "terms": [["keys", "terms", ""]],
    "data": [["tables", "samples", "facts"], ["weights", "", ""]],
    "losses": [["", "pseudo_likelihood", ""]],
    "fit": [["rank", "objective", "sandwich"], ["gaussian", "newton", "penalties"], ["sums", "learn", "held_out"]],
    "model": [["", "model", "fitted"]],
    "estimators": [["columns", "base", "findings"], ["", "pseudo_likelihood", ""]],
}

# The files that rows and unknowns pass through. All others are leaves: they check, report or compute one small thing.
CENTRAL = (
    "estimators/base",
    "estimators/columns",
    "data/samples",
    "axes/line",
    "axes/polynomial",
    "axes/base",
    "terms/terms",
    "losses/pseudo_likelihood",
    "fit/objective",
    "fit/learn",
    "fit/newton",
    "fit/penalties",
    "fit/sandwich",
    "model/model",
)


class Call(NamedTuple):
    """A call from one file to another. `handed` if the caller was given what it calls: a function, or an iterator."""

    caller: str
    called: str
    handed: bool

    @property
    def back(self) -> bool:
        """Whether it goes to a later room."""
        return goes_back(self.caller, self.called)


class Trace(NamedTuple):
    """The files in the order of their first entry, and the calls between different files."""

    files: list[str]
    calls: list[Call]


def trace() -> Trace:
    """One default fit of two variables, in one thread, as `sys.setprofile` sees it."""
    X = paper_pair(2000)
    est = PseudoLikelihood(4, n_jobs=1, progress=False)
    door = type(est).fit.__module__.removeprefix("isodus.").replace(".", "/")
    files: dict[str, None] = {door: None}
    calls: dict[Call, None] = {}

    def see(frame: FrameType, event: str, argument: Any) -> None:
        name = _file(frame)
        if event != "call" or name is None:
            return
        files.setdefault(name)
        back = frame.f_back
        while back is not None and _file(back) is None:
            back = back.f_back
        caller = door if back is None else _file(back)
        if caller is not None and caller != name:
            code = frame.f_code
            function = "<locals>" in code.co_qualname and not code.co_name.startswith("<")
            iterator = code.co_flags & inspect.CO_GENERATOR and goes_back(caller, name)
            calls.setdefault(Call(caller, name, bool(function or iterator)))

    sys.setprofile(see)
    try:
        est.fit(X)
    finally:
        sys.setprofile(None)
    return Trace(list(files), list(calls))


def goes_back(caller: str, called: str) -> bool:
    """Whether a call goes to a later room."""
    rooms = list(ROOMS)
    return rooms.index(called.split("/")[0]) > rooms.index(caller.split("/")[0])


def _file(frame: FrameType) -> str | None:
    """The file of the package that a frame is in, such as "fit/newton"."""
    path = frame.f_code.co_filename
    return path[len(PACKAGE) :].removesuffix(".py") if path.startswith(PACKAGE) else None


# the picture ---------------------------------------------------------------------------------------------------------

WIDTH, LEFT = 400, 8  # units; narrow, so that a phone shows it without scaling
BOX, HIGH, STEP, ROW = 96, 26, 144, 54  # a box, from one to the next, and from one line of boxes to the next
HEAD = 26  # above the boxes of a room
COLOURS = {"central": "#1f4e79", "leaf": "#9aa5b1", "handed": "#c2410c"}


def picture(found: Trace) -> str:
    """The trace as SVG: rooms from top to bottom, files as numbered boxes, calls as arrows."""
    places, rooms, y = {}, [], 8
    for room, lines in ROOMS.items():
        height = HEAD + ROW * len(lines) - 14
        rooms.append(f'<rect x="2" y="{y}" width="{WIDTH - 4}" height="{height}" rx="6" class="room"/>')
        rooms.append(f'<text x="{LEFT}" y="{y + 16}" class="name">{room}/</text>')
        for line, names in enumerate(lines):
            for column, name in enumerate(names):
                places[f"{room}/{name}"] = (LEFT + 4 + STEP * column, y + HEAD + ROW * line)
        y += height + 16
    lost = [file for file in found.files if file not in places]
    if lost:
        raise ValueError(f"ROOMS has no place for {', '.join(lost)}. Add the file where it should be drawn.")
    arrows = [_arrow(call, places) for call in sorted(found.calls, key=_weight)]
    boxes = [_box(file, number, *places[file]) for number, file in enumerate(found.files, start=1)]
    return "\n".join([_head(y + 62), *rooms, *arrows, *boxes, *_legend(y), "</svg>", ""])


def _weight(call: Call) -> int:
    """Which arrows are drawn later, over the others."""
    return ("leaf", "central", "handed").index(_kind(call))


def _kind(call: Call) -> str:
    if call.handed:
        return "handed"
    return "central" if call.caller in CENTRAL and call.called in CENTRAL else "leaf"


def _head(height: int) -> str:
    markers = [
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
        for kind, colour in COLOURS.items()
    ]
    styles = [
        "text{font:12px system-ui,sans-serif;fill:#1b1f24}.name{font-weight:600;fill:#57606a}",
        ".room{fill:#f6f8fa;stroke:#d0d7de}.box{fill:#fff;stroke:#9aa5b1}.main{fill:#e3eefb;stroke:#1f4e79}",
        ".number{font-size:10px;font-weight:600;fill:#57606a}.central,.leaf,.handed{fill:none}",
        f".central{{stroke:{COLOURS['central']};stroke-width:1.5}}.leaf{{stroke:{COLOURS['leaf']};stroke-width:.8}}",
        f".handed{{stroke:{COLOURS['handed']};stroke-width:1.2;stroke-dasharray:4 3}}",
    ]
    title = "Calls between the files of one default fit"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}"><title>{title}</title><style>{"".join(styles)}</style>'
        f'<defs>{"".join(markers)}</defs><rect width="100%" height="100%" fill="#fff"/>'
    )


def _box(file: str, number: int, x: float, y: float) -> str:
    name = file.split("/")[1]
    kind, wide = "box main" if file in CENTRAL else "box", max(BOX, 26 + 6.6 * len(name))
    x -= (wide - BOX) / 2
    return (
        f'<rect x="{x:g}" y="{y}" width="{wide:g}" height="{HIGH}" rx="4" class="{kind}"/>'
        f'<text x="{x + 5:g}" y="{y + 17}" class="number">{number}</text>'
        f'<text x="{x + 21:g}" y="{y + 17}">{name}</text>'
    )


def _arrow(call: Call, places: dict[str, tuple[float, float]]) -> str:
    """Within a column from edge to edge, or beside the boxes in between; else through the gap between columns."""
    (x0, y0), (x1, y1) = places[call.caller], places[call.called]
    kind, height, away = _kind(call), HIGH / 2, 4 if y1 > y0 else -4
    between = any(x == x0 and min(y0, y1) < y < max(y0, y1) for x, y in places.values())
    if x0 == x1 and not between:
        path = f"M{x0 + BOX / 2:g} {y0 + HIGH * (y1 > y0)}V{y1 + HIGH * (y1 < y0)}"
    else:
        side = (1 if x1 > x0 else -1) if x0 != x1 else -1 if call.caller.startswith("fit") and not call.handed else 1
        start, end = x0 + BOX * (side > 0), x1 + BOX * ((side < 0) == (x0 != x1))
        near = start + side * (18 + 0.06 * abs(y1 - y0) + 8 * call.handed)
        bends = (near, near) if x0 == x1 else ((start + end) / 2,) * 2
        y0, y1 = y0 + height + away, y1 + height - away
        if places[call.caller][1] == places[call.called][1]:
            y0 = y1 = y0 + (8 if side > 0 else 0)
        path = f"M{start:g} {y0:g}C{bends[0]:g} {y0:g} {bends[1]:g} {y1:g} {end:g} {y1:g}"
    return f'<path d="{path}" class="{kind}" marker-end="url(#{kind})"/>'


def _legend(y: float) -> list[str]:
    words = {
        "central": "call between files of the central path (blue boxes)",
        "leaf": "other call",
        "handed": "call of a function or iterator that the caller was given",
    }
    return [
        f'<path d="M{LEFT} {y + 8 + 18 * k}h30" class="{kind}" marker-end="url(#{kind})"/>'
        f'<text x="{LEFT + 40}" y="{y + 12 + 18 * k}">{text}</text>'
        for k, (kind, text) in enumerate(words.items())
    ]


if __name__ == "__main__":
    one = trace()
    for number, file in enumerate(one.files, start=1):
        print(f"{number:>3} {'*' if file in CENTRAL else ' '} {file}.py")
    leaves, ways = len(one.files) - len(CENTRAL), len({(call.caller, call.called) for call in one.calls})
    print(f"{len(one.files)} files: {len(CENTRAL)} of the central path (*), {leaves} leaves; {ways} ways between them")
    for call in one.calls:
        if call.back:
            print(f"back: {call.caller} -> {call.called}, {'given' if call.handed else 'DIRECT'}")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    target.write_text(picture(one), encoding="utf-8")
