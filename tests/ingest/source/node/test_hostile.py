"""A pipe or a folder in place of a node's file gives an error with its name, without blocking."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.errors import BlockCorrupt, SourceError
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.source.node.source import open_node

PACKAGE = "archive/packages/arch0000/archive.00100.pack"
PATIENCE_S = 30
MAKERS = [os.mkfifo, os.mkdir]
KINDS: dict[Callable[..., None], str] = {os.mkfifo: "a pipe", os.mkdir: "a folder"}


@contextmanager
def at_once() -> Iterator[None]:
    """Fail if the block takes long, as reading from a pipe without a writer would."""

    def give_up(_number: int, _frame: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def replace(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize("make", MAKERS)
def test_in_place_of_a_package(
    copied: Path, bundles: list[McBundle], make: Callable[[Path], None]
) -> None:
    replace(copied / PACKAGE, make)
    with at_once(), closing(open_node(copied)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 238)
        assert source.read_bundle(99) == bundles[98]
        with pytest.raises(BlockCorrupt, match=f"00100.pack at byte .*: .*found {KINDS[make]}"):
            source.read_bundle(150)


@pytest.mark.parametrize("make", MAKERS)
def test_in_place_of_a_package_without_an_index(
    copied: Path, bundles: list[McBundle], make: Callable[[Path], None]
) -> None:
    replace(copied / PACKAGE, make)
    with at_once(), closing(PackSource(copied / "archive/packages")) as source:
        assert source.read_bundle(99) == bundles[98]
        with pytest.raises(BlockCorrupt, match=f"00100.pack at byte 0: .*found {KINDS[make]}"):
            source.read_bundle(150)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*", "*.sst", "*.log"])
@pytest.mark.parametrize("store", ["state", "files/globalindex"])
def test_in_place_of_a_file_of_a_store(
    copied: Path, store: str, pattern: str, make: Callable[[Path], None]
) -> None:
    replace(next((copied / store).glob(pattern)), make)
    with at_once(), pytest.raises(SourceError, match=f"{store}: .*found {KINDS[make]}"):
        open_node(copied)


@pytest.mark.parametrize("make", MAKERS)
def test_in_place_of_a_zero_state(copied: Path, make: Callable[[Path], None]) -> None:
    replace(next((copied / "archive/states").iterdir()), make)
    for path in (copied / "static").iterdir():  # which has the same states
        path.unlink()
    with (
        at_once(),
        closing(open_node(copied)) as source,
        pytest.raises(SourceError, match=f"archive/states/.*found {KINDS[make]}"),
    ):
        source.zero_states()
