"""Fetches the token content that is due into a lake, in batches with one commit each.

Rows are stored with the first blocks whose contracts name the URL: they are merged, exported and
undone together with these. No lock is held during requests.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.errors import ContentInvalid, FetchError, FetchFailed, FetchRefused
from tonlake.ingest.metadata.download import MAX_URI_CHARS, Downloader
from tonlake.ingest.settings import IngestSections
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.file.rows import Row, read_rows
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, NewFile, Place, list_places, read_place
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import DataFile, read_state
from tonlake.lake.process import serve_child, write_line
from tonlake.lake.schema import OFFCHAIN_METADATA
from tonlake.lake.settings import LakeSettings

CONNECTIONS = 8
ATTEMPTS = 5
"""Failed attempts after which token content is not fetched again."""
RETRY_S = 60
"""Seconds before the first retry of a failed request, doubled each time."""
REFRESH_S = 604_800
"""Seconds before fetched content is fetched again: one week."""

LISTED, BATCH = 65_536, 1024
"""URLs listed at a time, which scans all tokens, and URLs requested per commit: each commit
rewrites the files to which it adds rows."""

_TABLES = ("jetton_masters", "nft_collections", "nft_items", OFFCHAIN_METADATA.name)
_MAX_PAUSE_S = 86_400
"""Maximum pause between retries: one day."""
_OUTCOMES: dict[type[FetchError], str] = {
    FetchRefused: "refused",
    ContentInvalid: "invalid",
    FetchFailed: "failed",
}


class Due(NamedTuple):
    """A URL to request, the block that first named it, and the result of earlier requests."""

    uri: str
    mc_seqno: int
    attempts: int
    url: str | None
    content: str | None


class FetchReport(msgspec.Struct):
    """Number of requested URLs by outcome, and of commits."""

    fetched: int = 0
    invalid: int = 0
    failed: int = 0
    refused: int = 0
    commits: int = 0

    @property
    def asked(self) -> int:
        """Number of requested URLs."""
        return self.fetched + self.invalid + self.failed + self.refused


def describe_report(report: FetchReport) -> str:
    """Return a one-line summary."""
    return (
        f"{report.asked:,} asked: {report.fetched:,} fetched, {report.invalid:,} invalid, "
        f"{report.failed:,} failed, {report.refused:,} refused"
    )


def fetch_metadata(
    lake_dir: Path,
    settings: IngestSections,
    *,
    everything: bool = False,
    most: int | None = None,
    downloader: Downloader | None = None,
    read_clock: Callable[[], float] = time.time,
) -> FetchReport:
    """Fetch at most ``most`` URLs of token content that are due, and commit the responses.

    ``everything`` includes those already fetched, and those that failed too often.
    ``read_clock`` returns Unix seconds.
    """
    fetcher = downloader or Downloader(settings.metadata)
    report = FetchReport()
    began_s = int(read_clock())
    with ThreadPoolExecutor(CONNECTIONS, "fetch") as threads:
        while most is None or report.asked < most:
            count = LISTED if most is None else min(LISTED, most - report.asked)
            due = list_due(lake_dir, settings.lake, began_s, everything=everything, most=count)
            if not due:
                break
            for start in range(0, len(due), BATCH):
                tries = threads.map(
                    lambda each: _try(fetcher, each, int(read_clock())), due[start : start + BATCH]
                )
                rows = list(tries)
                report.commits += _commit_rows(lake_dir, rows, settings.lake)
                for row in rows:
                    setattr(report, row["outcome"], getattr(report, row["outcome"]) + 1)
    return report


def list_due(
    lake_dir: Path, settings: LakeSettings, now_s: int, *, everything: bool, most: int
) -> list[Due]:
    """Return the URLs that are due at ``now_s``, at most ``most``."""
    # Only the list of URLs is read, so digests need not be checked.
    snapshot = open_snapshot(lake_dir, check_digests=False)
    text = (files("tonlake.ingest.metadata") / "due.sql").read_text(encoding="utf-8")
    parameters = {
        "now": now_s,
        "everything": everything,
        "max_chars": MAX_URI_CHARS,
        "max_rows": most,
    }
    with connect(snapshot, settings, tables=_TABLES, statement=text) as connection:
        return [Due(*row) for row in connection.execute(text, parameters).fetchall()]


def _try(fetcher: Downloader, due: Due, now_s: int) -> Row:
    """Fetch one URL; return its row, with the key ``outcome`` added."""
    row: Row = {
        "uri": due.uri,
        "mc_seqno": due.mc_seqno,
        "fetched_at": now_s,
        "attempts": 0,
        "retry_at": now_s + REFRESH_S,
        "error": None,
    }
    try:
        document = fetcher.fetch(due.uri)
    except FetchError as error:
        row |= {"url": due.url, "content": due.content, "error": str(error)}
        row["attempts"] = due.attempts + 1
        outcome = _OUTCOMES[type(error)]
        if outcome == "refused" or (outcome == "failed" and row["attempts"] >= ATTEMPTS):
            row["retry_at"] = None
        elif outcome == "failed":
            row["retry_at"] = now_s + min(RETRY_S << due.attempts, _MAX_PAUSE_S)
        # Keep older content if there is any.
        return row | {"outcome": outcome, "state": outcome if due.content is None else "fetched"}
    return row | {**document._asdict(), "outcome": "fetched", "state": "fetched"}


def _commit_rows(lake_dir: Path, rows: list[Row], settings: LakeSettings) -> int:
    """Merge rows into the files of their places; return the number of commits, 0 or 1."""
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        by_place = _sort_rows(rows, list_places(state))
        known = {
            read_place(file.path): file
            for file in state.files
            if file.table == OFFCHAIN_METADATA.name and read_place(file.path) in by_place
        }
        merged = Derivation(
            _merge_files(lake_dir, by_place, known), frozenset(file.path for file in known.values())
        )
        added, removed = write_changes(lake_dir, state, merged, settings)
        if not added and not removed:
            return 0
        commit_maintenance(lake_dir, state, added=added, removed=removed)
    return 1


def _sort_rows(rows: Iterable[Row], places: list[Place]) -> dict[Place, list[Row]]:
    """Return rows by place, without those whose blocks were undone meanwhile."""
    found: dict[Place, list[Row]] = {}
    for row in rows:
        for place in places:
            # A zero state belongs to the first block.
            if place.first <= max(row["mc_seqno"], 1) <= place.last:
                found.setdefault(place, []).append(row)
    return found


def _merge_files(
    lake_dir: Path, by_place: dict[Place, list[Row]], known: dict[Place, DataFile]
) -> Iterator[NewFile]:
    schema = OFFCHAIN_METADATA.arrow
    for place, rows in by_place.items():
        new = pa.Table.from_pylist(rows, schema=schema)
        if place in known:
            old = read_rows(lake_dir, known[place])
            is_kept = pc.invert(pc.is_in(old["uri"], value_set=new["uri"].combine_chunks()))
            new = pa.concat_tables([old.filter(is_kept), new])
        yield NewFile(OFFCHAIN_METADATA.name, place, new)


POLL_S = 60
"""Seconds between searches for token content to fetch."""


def keep_fetching(lake_dir: str, settings: IngestSections) -> None:
    """Fetch what is due, pause, and repeat; the lake need not exist yet."""
    downloader = Downloader(settings.metadata)
    while True:
        with suppress(LakeNotFound):
            report = fetch_metadata(Path(lake_dir), settings, downloader=downloader)
            if report.asked:
                write_line("fetch", describe_report(report))
        time.sleep(POLL_S)


if __name__ == "__main__":
    serve_child("fetch", IngestSections, keep_fetching)
