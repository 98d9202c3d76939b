"""The views of a snapshot, made as readers need them."""

from tonlake.lake.duck.connection import Database, SnapshotViews
from tonlake.lake.duck.engine import DEFAULTS
from tonlake.lake.log.snapshot import Snapshot


def open_views(snapshot: Snapshot) -> SnapshotViews:
    return Database(snapshot.lake_dir, DEFAULTS).open(snapshot)
