"""A pool of TVM workers with generous limits; separate tests cover the limits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.settings import TvmSettings


@pytest.fixture(scope="session")
def pool(tvm: None) -> Iterator[TvmPool]:
    """A pool that runs get-methods."""
    del tvm
    running = TvmPool(TvmSettings(wall_ms=20_000))
    yield running
    running.close()


@pytest.fixture(scope="session")
def config(shared: Path) -> bytes:
    """The configuration that the recorded programs ran with."""
    return (shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes()
