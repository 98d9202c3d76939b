"""Values between processes: equal, with their files deleted, and a clear error on a full disk."""

import multiprocessing
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonlake.ingest.run.process import BufferFiles, Channel, SharedValue
from tonlake.lake.errors import LakeFull


def count_open() -> int:
    """Return the number of open files."""
    return len(list(Path("/proc/self/fd").iterdir()))


def carry(value: object, folder: Path) -> Any:
    """Send a value from one end to the other, and return what arrives."""
    here, there = multiprocessing.Pipe()
    sender, receiver = Channel(here, BufferFiles(folder)), Channel(there, BufferFiles(folder))
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
    sizes=st.lists(st.integers(0, 60_000), max_size=5), cut=st.integers(0, 100), nulls=st.booleans()
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
    Channel(here, BufferFiles(folder)).send(table)
    assert Channel(there, BufferFiles(folder)).receive() == table
    here.close()
    there.close()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    here, there = multiprocessing.Pipe()
    sender, receiver = (Channel(each, BufferFiles(tmp_path)) for each in (here, there))
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


@pytest.mark.parametrize("is_swept", [False, True])
def test_what_was_received_is_sent_on_without_a_copy(tmp_path: Path, *, is_swept: bool) -> None:
    """Slices and joined tables too: they lie in the same file."""
    worker, coordinator = BufferFiles(tmp_path), BufferFiles(tmp_path, keeps=True)
    table = pa.table({"a": range(100_000), "b": pa.array([b"x" * 32] * 100_000, pa.binary(32))})
    first, second = (coordinator.unpack(worker.pack(table)) for _ in range(2))
    joined = pa.concat_tables([first.slice(3), second])
    packed = coordinator.pack(joined)
    assert packed.fresh is None
    assert len(packed.paths) == 2
    assert not list(tmp_path.iterdir())
    if is_swept:
        tmp_path.rmdir()
    arrived = worker.unpack(packed)
    del first, second, joined
    assert arrived.slice(0, 99_997) == table.slice(3)
    assert arrived.slice(99_997) == table


def test_shared_rows_are_written_once_and_their_file_closed(tmp_path: Path) -> None:
    files = BufferFiles(tmp_path, keeps=True)
    before = count_open()
    table = pa.table({"a": range(100_000)})
    value = SharedValue(files, table)
    shared = value.open()
    assert shared == table
    assert BufferFiles(tmp_path).unpack(files.pack([value]))[0].open() == table
    again = files.pack([shared, shared.slice(5), {"b": 1}])
    assert again.fresh is None
    kept = files.unpack(again)
    del shared, value
    assert kept[1] == table.slice(5)
    assert files.pack(kept[1]).fresh is None
    assert count_open() > before
    del kept
    assert count_open() == before
    assert files.pack(table).fresh is not None
