"""Fetches token content in a child process: ``python -m tonlake.ingest.metadata.process``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tonlake.ingest.metadata.download import Downloader
from tonlake.ingest.metadata.fetching import describe_report, fetch_metadata
from tonlake.ingest.settings import IngestSections, decode_sections
from tonlake.lake.errors import LakeError, LakeNotFound
from tonlake.lake.process import run_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.metadata.fetching import Fetcher, FetchReport

POLL_S = 60
"""Seconds between searches for token content to fetch."""

EXIT_REFUSED = 1


def keep_fetching(
    lake_dir: Path,
    settings: IngestSections,
    *,
    on_report: Callable[[FetchReport], None],
    wait: Callable[[float], object] = time.sleep,
    is_over: Callable[[], bool] = lambda: False,
    downloader: Fetcher | None = None,
) -> None:
    """Fetch what is due, pause, and repeat; the lake need not exist yet.

    Raises:
        LakeError: the lake is damaged or the disk is full.
    """
    fetcher = downloader or Downloader(settings.metadata)
    while not is_over():
        try:
            report = fetch_metadata(lake_dir, settings, downloader=fetcher)
        except LakeNotFound:
            report = None
        if report is not None and report.asked:
            on_report(report)
        wait(POLL_S)


def _report(text: str) -> None:
    sys.stderr.write(f"fetch: {text}\n")
    sys.stderr.flush()


def main() -> NoReturn:
    """Run the process."""
    parser = argparse.ArgumentParser(description="Fetch token content for a server.")
    parser.add_argument("--lake", type=Path, required=True)
    parser.add_argument("--settings", type=decode_sections, required=True)
    options = parser.parse_args()
    run_child(lambda: _fetch(options.lake, options.settings))


def _fetch(lake: Path, settings: IngestSections) -> int:
    """Fetch until SIGTERM; return the exit code after an error of the lake."""
    try:
        keep_fetching(lake, settings, on_report=lambda report: _report(describe_report(report)))
    except LakeError as error:
        _report(str(error))
    return EXIT_REFUSED


if __name__ == "__main__":
    main()
