"""Versions of the network and of engines, and what is unknown between them."""

import shutil
from pathlib import Path

import pytest

from tonlake.ingest.derive.tvm.machine.run import VERSION
from tonlake.ingest.derive.tvm.support import (
    TONPY_VERSION,
    Support,
    compare_versions,
    find_detector,
    find_emulator,
    find_engine,
    list_engines,
    read_network_version,
)
from tonlake.ingest.settings import TvmSettings
from tonlake.lake.log.snapshot import open_snapshot

ENGINE = Support("get-methods", "old", 11)


@pytest.mark.parametrize(
    ("exit_code", "network", "unknown"),
    [(6, 12, True), (6, 99, True), (6, 11, False), (11, 15, False), (0, 99, False)],
)
def test_exit_code_6_is_unknown_on_a_later_network(
    exit_code: int, network: int, *, unknown: bool
) -> None:
    reason = ENGINE.explain(exit_code, network)
    assert (reason is not None) is unknown
    if reason is not None:
        assert f"old supports global version 11, and the network has {network}" in reason


def test_a_network_that_the_engines_support_has_no_gap(demo_lake: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    assert read_network_version(snapshot) == 11
    versions = compare_versions(snapshot, list_engines(TvmSettings()))
    assert versions.network == 11
    assert versions.gap == ""
    assert [each.use for each in versions.engines] == ["get-methods", "emulation"]


def test_a_library_that_cannot_be_loaded_has_no_version(tmp_path: Path) -> None:
    path = str(tmp_path / "none.so")
    assert find_engine(TvmSettings(emulator_library=path)) == Support("get-methods", path, None)
    assert find_engine(TvmSettings()).version == VERSION
    assert find_detector(TvmSettings(emulator_library=path)) == find_engine(TvmSettings())
    assert find_emulator(TvmSettings()).version == TONPY_VERSION


def test_only_the_engine_that_is_older_is_named(demo_lake: Path) -> None:
    engines = Support("get-methods", "new", 11), Support("emulation", "old", 10)
    gap = compare_versions(open_snapshot(demo_lake), engines).gap
    assert "emulation by old support 10: upgrade" in gap
    assert "new" not in gap


def test_a_damaged_configuration_is_named(demo_lake: Path, tmp_path: Path) -> None:
    lake_dir: Path = shutil.copytree(demo_lake, tmp_path / "lake")
    (path,) = lake_dir.glob("config_params/**/*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    snapshot = open_snapshot(lake_dir, check_digests=False)
    found = compare_versions(snapshot, [ENGINE])
    assert found.network is None
    assert path.name in found.gap
