"""Follows a node in a child process: ``python -m tonlake.ingest.run.tail``."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections, decode_sections, encode_sections
from tonlake.ingest.source.origin import Origin
from tonlake.lake.errors import LakeError
from tonlake.lake.process import run_child, write_line

EXIT_REFUSED = 1


def name_command(origin: Origin, lake: Path, settings: IngestSections) -> list[str]:
    """Return the command line of this process."""
    options = [*origin.options(), "--lake", str(lake), "--settings", encode_sections(settings)]
    return [sys.executable, "-P", "-m", "tonlake.ingest.run.tail", *options]


def follow_origin(origin: Origin, lake: Path, settings: IngestSections) -> int:
    """Follow a node or a network until SIGTERM; return the exit code."""
    # Imported here, since a server imports this module for the command line alone.
    from tonlake.ingest.run.follow import keep_following  # noqa: PLC0415 - as above

    try:
        keep_following(origin, lake, settings, notify=partial(write_line, "follow"))
    except (IngestError, LakeError) as error:
        write_line("follow", str(error))
    return EXIT_REFUSED


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
