"""Follows a node or a network in a child process: ``python -m tonlake.ingest.run.tail``."""

from functools import partial
from pathlib import Path

from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.origin import Origin
from tonlake.lake.process import name_child, serve_child, write_line


def name_command(origin: Origin, lake: Path, settings: IngestSections) -> list[str]:
    """Return the command line of this process."""
    places = origin.node or "", origin.liteserver or "", lake
    return name_child("tonlake.ingest.run.tail", IngestSections, settings, *places)


def _follow(node: str, liteserver: str, lake: str, settings: IngestSections) -> None:
    # Imported here, since a server imports this module for the command line alone.
    from tonlake.ingest.run.follow import keep_following  # noqa: PLC0415 - as above

    origin = Origin(Path(node) if node else None, None, Path(liteserver) if liteserver else None)
    keep_following(origin, Path(lake), settings, notify=partial(write_line, "follow"))


if __name__ == "__main__":
    serve_child("follow", IngestSections, _follow, IngestError)
