"""Groups the live files of a lake by table and by place, incrementally from commit to commit.

A commit changes few groups, however many files a lake has; a state shares all others with the
state before it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tonlake.lake.log.state import Commit, DataFile

Groups = dict[str, tuple["DataFile", ...]]
"""Files by table or by place; no group is empty."""


def name_table(path: str) -> str:
    """Return the table of a data file's path."""
    return path[: path.find("/")]


def name_place(path: str) -> str:
    """Return the name of the place in a data file's path, such as ``day=2026-11-23/1-500``."""
    return path[path.find("/") + 1 : path.rfind("-")]


def change_groups(
    before: Groups,
    removed: Collection[str],
    added: Iterable[DataFile],
    name: Callable[[str], str],
) -> Groups:
    """Return the groups without the ``removed`` paths, with ``added`` files appended."""
    found = dict(before)
    gone: defaultdict[str, set[str]] = defaultdict(set)
    for path in removed:
        gone[name(path)].add(path)
    for group, paths in gone.items():
        kept = leave_out(found.pop(group, ()), paths)
        if kept:
            found[group] = kept
    more: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in added:
        more[name(file.path)].append(file)
    for group, files in more.items():
        found[group] = (*found.get(group, ()), *files)
    return found


def find_paths(by_place: Groups, paths: Collection[str]) -> set[str]:
    """Return the ``paths`` that are live; only files at their places are compared."""
    named = {name_place(path) for path in paths}
    known = (file.path for place in named for file in by_place.get(place, ()))
    return {path for path in known if path in paths}


def sum_changes(commits: Iterable[Commit]) -> tuple[set[str], tuple[DataFile, ...]]:
    """Return the net change of consecutive commits: paths they remove, and files they add."""
    removed: set[str] = set()
    added: dict[str, DataFile] = {}
    for commit in commits:
        removed.update(path for path in commit.removed if added.pop(path, None) is None)
        added.update((file.path, file) for file in commit.added)
    return removed, tuple(added.values())


def leave_out(files: tuple[DataFile, ...], removed: Collection[str]) -> tuple[DataFile, ...]:
    """Return ``files`` without the ``removed`` paths, most of which are near the end."""
    missing, at = set(removed), len(files)
    while missing and at:
        at -= 1
        missing.discard(files[at].path)
    return files[:at] + tuple(file for file in files[at:] if file.path not in removed)
