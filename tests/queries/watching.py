"""A reader that says which queries it asked."""

from __future__ import annotations

from typing import Any

from lake.lookup.opening import open_lookups
from lake.settings import LakeSettings
from queries.reader import Reader


class Watching(Reader):
    """Answers as any reader does; ``asked`` are the names of its queries."""

    asked: list[str]

    def rows(self, name: str, **parameters: object) -> list[dict[str, Any]]:
        """Answer one query, and note its name."""
        self.asked.append(name)
        return super().rows(name, **parameters)


def watch(reader: Reader) -> Watching:
    """Return a reader of the same snapshot, with its look-ups, that asked nothing yet."""
    snapshot = reader.snapshot
    lookups = open_lookups(snapshot, LakeSettings())
    found = Watching(snapshot, snapshot.connect(), lookups=lookups)
    found.asked = []
    return found
