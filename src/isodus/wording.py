"""Numbers of things, lists of names and lines of notes, as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed", "many", "once"]


def many(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names with commas, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def once(lines: Sequence[str]) -> list[str]:
    """Each line once, none that another begins with, and lines that differ in a word or a name as one."""
    kept = dict.fromkeys(" ".join(line.split()) for line in lines if line.strip())
    own = [line for line in kept if not any(other != line and other.startswith(line) for other in kept)]
    groups: list[list[list[str]]] = []
    for parts in (line.split(" ") for line in own):
        if groups and _shared([*groups[-1], parts]) is not None:
            groups[-1].append(parts)
        else:
            groups.append([parts])
    return [_merged(group) for group in groups]


def _shared(group: list[list[str]]) -> tuple[int, int] | None:
    """With how many words lines begin alike, and end alike, if they differ in one word or a longer name only."""
    first, shortest = group[0], min(map(len, group))
    start = next((k for k in range(shortest) if any(one[k] != first[k] for one in group)), shortest)
    rest = range(1, shortest - start + 1)
    end = next((k - 1 for k in rest if any(one[-k] != first[-k] for one in group)), shortest - start)
    words = {len(one) - start - end for one in group}
    return (start, end) if words == {1} or (0 not in words and start >= 2 and end >= 3) else None


def _merged(group: list[list[str]]) -> str:
    """One line for all of a group, with what they differ in listed."""
    if len(group) == 1:
        return " ".join(group[0])
    start, end = _shared(group) or (0, 0)
    names = [" ".join(one[start : len(one) - end]) for one in group]
    mark = names[0][-1:] if names[0][-1:] in (":", ";", ",", ".") else ""
    shown = listed([name.removesuffix(mark) for name in names], 12) + mark
    text = " ".join([*group[0][:start], shown, *group[0][len(group[0]) - end :]])
    return text.replace(": its parameter is held", ": their parameters are held")
