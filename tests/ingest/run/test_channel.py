"""Values between processes: equal, their files gone, and a full disk named."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonlake.ingest.run.channel import Channel
from tonlake.lake.errors import LakeFull

if TYPE_CHECKING:
    from pathlib import Path


def carry(value: object, folder: Path) -> Any:
    """Send a value from one end to the other, and return what arrives."""
    here, there = multiprocessing.Pipe()
    sender, receiver = Channel(here, folder), Channel(there, folder)
    thread = threading.Thread(target=sender.send, args=(value,))
    thread.start()
    found = receiver.receive()
    thread.join()
    sender.close()
    with pytest.raises(EOFError):
        receiver.receive()
    receiver.close()
    assert not list(folder.iterdir())
    return found


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 60_000), max_size=5),
    cut=st.integers(0, 100),
    nulls=st.booleans(),
)
def test_tables_arrive_as_they_were(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    cut: int,
    nulls: bool,  # noqa: FBT001
) -> None:
    tables = [
        pa.table(
            {
                "number": pa.array(range(size), pa.int64()),
                "text": [None if nulls and at % 3 else f"{at}" for at in range(size)],
                "hash": pa.array([at.to_bytes(32) for at in range(size)], pa.binary(32)),
            }
        ).slice(cut)
        for size in sizes
    ]
    found = carry({"tables": tables, "cut": cut}, tmp_path_factory.mktemp("channel"))
    assert found == {"tables": tables, "cut": cut}
    for table in found["tables"]:
        table.validate(full=True)


def test_a_table_outlives_its_file_and_its_channel(tmp_path: Path) -> None:
    found = carry(pa.table({"a": range(100_000)}), tmp_path)["a"]
    assert found.slice(99_999).to_pylist() == [99_999]


def test_a_folder_that_was_swept_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    table = pa.table({"a": range(10_000)})
    here, there = multiprocessing.Pipe()
    Channel(here, folder).send(table)
    assert Channel(there, folder).receive() == table
    here.close()
    there.close()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    here, there = multiprocessing.Pipe()
    sender, receiver = Channel(here, tmp_path), Channel(there, tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(LakeFull):
            sender.send(pa.table({"a": range(100_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
    sender.send("goes on")
    assert receiver.receive() == "goes on"
    for each in (sender, receiver):
        each.close()
