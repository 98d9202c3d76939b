"""A process that fetches token content for a server: ``python -m ingest.metadata.process``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ingest.metadata.download import Downloader
from ingest.metadata.fetching import describe_report, fetch_metadata
from lake.child import run_child
from lake.errors import LakeError, LakeNotFound
from lake.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.metadata.fetching import Fetches, FetchReport
    from lake.settings import Settings

EXIT_REFUSED = 1


def keep_fetching(
    lake_dir: Path,
    settings: Settings,
    *,
    on_report: Callable[[FetchReport], None],
    wait: Callable[[float], object] = time.sleep,
    is_over: Callable[[], bool] = lambda: False,
    downloader: Fetches | None = None,
) -> None:
    """Fetch what is due, wait, and so on; a lake that is not there yet is waited for.

    Raises:
        LakeError: the lake is damaged or full.
    """
    fetches = downloader or Downloader(settings)
    while not is_over():
        try:
            report = fetch_metadata(lake_dir, settings, downloader=fetches)
        except LakeNotFound:
            report = None
        if report is not None and report.asked:
            on_report(report)
        wait(settings.metadata_poll_s)


def _tell(text: str) -> None:
    sys.stderr.write(f"fetch: {text}\n")
    sys.stderr.flush()


def main() -> NoReturn:
    """Run the process."""
    parser = argparse.ArgumentParser(description="Fetch token content for a server.")
    parser.add_argument("--lake", type=Path, required=True)
    options = parser.parse_args()
    run_child(lambda: _fetch(options.lake))


def _fetch(lake: Path) -> int:
    """Fetch until this process is told to end; return the exit code when it cannot go on."""
    try:
        keep_fetching(
            lake, load_settings()[0], on_report=lambda report: _tell(describe_report(report))
        )
    except LakeError as error:
        _tell(str(error))
    return EXIT_REFUSED


if __name__ == "__main__":
    main()
