"""Leases are seen by sweeps in other processes, and end with their readers."""

import subprocess
import sys
from pathlib import Path

from tests.lake.rows import commit_rows
from tonlake.lake.log.snapshot import LEASE_FILE, Lease, list_leased, open_snapshot

LIST = """
import subprocess
import sys
from pathlib import Path
from tonlake.lake.log.snapshot import list_leased
print(*list_leased(Path(sys.argv[1]), 100))
"""


def test_snapshots_in_use_are_listed(lake: Path) -> None:
    assert list_leased(lake, 100) == []
    leases = [Lease(lake, number) for number in (7, 99, 1, 7, 42, 100)]
    assert list_leased(lake, 100) == [1, 7, 42, 99]
    assert list_leased(lake, 7) == [1]
    listed = subprocess.check_output([sys.executable, "-c", LIST, str(lake)])
    assert listed.split() == [b"1", b"7", b"42", b"99"]
    leases[0].close()
    assert list_leased(lake, 43) == [1, 7, 42]
    with leases[3]:
        pass
    assert list_leased(lake, 43) == [1, 42]
    del leases
    assert list_leased(lake, 100) == []


def test_a_snapshot_has_a_lease_until_it_is_forgotten(lake: Path) -> None:
    snapshot = open_snapshot(lake)
    commit_rows(lake, 31, 31)
    past = snapshot.up_to(20)
    assert list_leased(lake, 4) == [3]
    del snapshot
    assert list_leased(lake, 4) == [3]
    del past
    assert list_leased(lake, 4) == []


def test_a_folder_that_allows_no_lease_is_read(lake: Path) -> None:
    (lake / LEASE_FILE).unlink(missing_ok=True)
    (lake / LEASE_FILE).mkdir()
    (lake / LEASE_FILE).rmdir()
    (lake / LEASE_FILE).symlink_to("missing/leases")
    assert open_snapshot(lake).number == 3
    assert list_leased(lake, 3) == []
