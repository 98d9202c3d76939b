"""Follows a node in a child process: ``python -m tonlake.ingest.run.tail``."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections, decode_sections, encode_sections
from tonlake.ingest.source.origin import Origin
from tonlake.lake.errors import LakeError
from tonlake.lake.process import run_child

EXIT_REFUSED = 1


def name_command(origin: Origin, lake: Path, settings: IngestSections) -> list[str]:
    """Return the command line of this process."""
    options = [*origin.options(), "--lake", str(lake), "--settings", encode_sections(settings)]
    return [sys.executable, "-P", "-m", "tonlake.ingest.run.tail", *options]


def follow_origin(origin: Origin, lake: Path, settings: IngestSections) -> int:
    """Follow a node or a network until SIGTERM; return the exit code."""
    # Imported here, where pandas is hidden: else Arrow would load it during these imports.
    from tonlake.ingest.run.follow import Follower  # noqa: PLC0415 - as above
    from tonlake.ingest.run.workers import count_workers, start_workers  # noqa: PLC0415 - as above

    follower = Follower(
        lambda: origin.open(settings),
        lake,
        settings,
        notify=_notify,
        start_workers=lambda span: start_workers(origin, lake, settings, count_workers(span)),
    )
    problem: str | None = None
    try:
        follower.run(lambda: False)
    except (IngestError, LakeError) as error:
        problem = str(error)
        _notify(problem)
    finally:
        follower.close(problem)
    return EXIT_REFUSED


def _notify(text: str) -> None:
    # A full disk must not end the follower.
    with suppress(OSError):
        sys.stderr.write(f"follow: {text}\n")
        sys.stderr.flush()


def main() -> NoReturn:
    """Run the process."""
    parser = argparse.ArgumentParser(prog="tonlake.ingest.run.tail", description="Follow a node.")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--node", type=Path)
    place.add_argument("--liteserver", type=Path)
    parser.add_argument("--lake", type=Path, required=True)
    parser.add_argument("--settings", type=decode_sections, required=True)
    options = parser.parse_args()
    origin = Origin(options.node, None, options.liteserver)
    run_child(lambda: follow_origin(origin, options.lake, options.settings))


if __name__ == "__main__":
    main()
