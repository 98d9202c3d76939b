"""The command ``tonlake ingest``: its output and its exit codes."""

import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from tests import commands
from tests.damage import flip_file
from tonlake.ingest.run.pipeline import Indexing
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.state import read_state

run = partial(commands.run, "ingest")


@pytest.mark.parametrize("span", ["abc", "1:2:3", "5:3", "239:", "-"])
def test_a_range_of_nothing_is_a_usage_error(demo_node: Path, tmp_path: Path, span: str) -> None:
    done = run("--node", demo_node, "--lake", tmp_path / "lake", f"--range={span}")
    assert done.exit_code == 2
    assert f"range '{span}'" in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--node", ".", "--packs", "."),
        ("--node", ".", "--range", "1:2", "--to", "5"),
        ("--node", ".", "--to", "5", "--follow"),
        ("--node", ".", "--range", "1:5", "--follow"),
        ("--node", "no-such-folder"),
    ],
)
def test_contradictions_are_usage_errors(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "--lake", tmp_path / "lake").exit_code == 2


def test_a_bad_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONLAKE_LAKE_ZSTD_LEVEL", "high")
    (tmp_path / "node").mkdir()
    done = run("--node", tmp_path / "node", "--lake", tmp_path / "lake")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "error: TONLAKE_LAKE_ZSTD_LEVEL: setting [lake] zstd_level = 'high'"
    )


def test_a_folder_that_is_no_node_is_a_data_problem(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    done = run("--node", tmp_path / "node", "--lake", tmp_path / "lake")
    assert done.exit_code == 1
    assert f"{tmp_path / 'node'} is not a database folder of a TON node" in done.stderr


@pytest.mark.parametrize("option", ["--node", "--packs"])
def test_no_lake_is_made_in_the_folder_of_a_source(tmp_path: Path, option: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for lake in (tmp_path, tmp_path / "lake", tmp_path / "link" / "lake"):
        done = run(option, tmp_path, "--lake", lake)
        assert done.exit_code == 2
        assert "which is only read: choose another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_a_lake_that_cannot_be_made_is_named(demo_node: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    arguments = ("--node", demo_node, "--range", "1:2", "--lake")
    below = run(*arguments, file / "lake")
    assert below.exit_code == 1
    assert below.stderr.startswith("error: ")
    assert str(file / "lake") in below.stderr
    assert run(*arguments, file).exit_code == 2


def test_a_range_beyond_the_node_is_not_called_complete(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    beyond = run("--node", demo_node, "--lake", lake, "--range", "300:310")
    assert beyond.exit_code == 3
    assert beyond.stdout == ""
    assert beyond.stderr == (
        "stopped before masterchain 300: not complete yet: block (-1,8000000000000000,300) in"
        " state: the node has completed masterchain blocks up to 238\n"
    )
    partly = run("--node", demo_node, "--lake", lake, "--range", "236:240", "--json")
    assert partly.exit_code == 3
    report = json.loads(partly.stdout)
    assert (report["committed"], report["stopped_at"]) == (["236:238"], 239)
    again = run("--node", demo_node, "--lake", lake, "--from", 236)
    assert again.exit_code == 0
    assert again.stdout == "masterchain 236:238: nothing new, the lake has all of it\n"


def test_blocks_that_a_shortened_manifest_forgot_are_holes(demo_node: Path, tmp_path: Path) -> None:
    """Temporary packages have them; without those the blocks are missing, and that is said."""
    node, lake = tmp_path / "db", tmp_path / "lake"
    shutil.copytree(demo_node, node)
    (manifest,) = (node / "archive/packages/arch0000/archive.00000.index").glob("MANIFEST-*")
    os.truncate(manifest, 198)
    healed = run("--node", node, "--lake", tmp_path / "healed", "--range", "110:", "--json")
    assert healed.exit_code == 0
    assert json.loads(healed.stdout)["committed"] == ["110:238"]
    shutil.rmtree(node / "files/packages")
    done = run("--node", node, "--lake", lake, "--range", "110:", "--json")
    assert done.exit_code == 3
    report = json.loads(done.stdout)
    assert report["committed"] == ["110:118"]
    assert [hole["mc_seqno"] for hole in report["holes"]] == list(range(119, 239))
    assert "archive.00000.index: the index has no such block" in report["holes"][0]["reason"]


def test_a_new_lake_begins_after_holes(demo_node: Path, tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    shutil.copytree(demo_node / "archive/packages/arch0000", folder)
    package = folder / "archive.00100.pack"
    package.write_bytes(package.read_bytes()[:1000])
    lacking = ("--packs", folder, "--json", "--lake", tmp_path / "lake", "--range")
    done = run(*lacking, "190:199")
    assert (done.exit_code, done.stderr) == (3, "")
    assert not (tmp_path / "lake").exists()
    done = run(*lacking, "199:201")
    assert (done.exit_code, json.loads(done.stdout)["committed"]) == (3, ["200:201"])
    done = run("--packs", folder, "--lake", tmp_path / "first", "--range", "1:2")
    assert (done.exit_code, done.stderr[:36]) == (0, "the source has no zero state: its co")


def test_an_index_that_had_no_room_is_built_by_the_same_command(
    demo_node: Path, tmp_path: Path
) -> None:
    arguments = ("--node", demo_node, "--lake", tmp_path / "lake", "--range", "1:9")
    with mock.patch.object(Indexing, "finish", side_effect=LakeFull("no room")):
        done = run(*arguments)
    assert (done.exit_code, done.stderr) == (1, "error: no room\n")
    assert "nothing new" in run(*arguments).stdout
    assert read_state(tmp_path / "lake").segments


def test_packages_that_lack_the_newest_shard_block_stop_with_a_reason(
    demo_node: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "packs"
    shutil.copytree(demo_node / "archive/packages/arch0000", folder)
    path = next(folder.glob("archive.00200.0*.pack"))
    data = path.read_bytes()
    newest = max(int(one) for one in re.findall(rb"block_\(0,[0-9a-f]{16},(\d+)\)", data))
    kept = data[: data.index(b"prooflink_(0,c000000000000000,%d)" % newest) - 8]
    path.write_bytes(kept)
    done = run("--packs", folder, "--lake", tmp_path / "lake", "--from", 236)
    assert done.exit_code == 3
    stop = re.search(
        r"stopped before masterchain (23\d): not complete yet: block \(0,c000000000000000,\d+\)"
        r" in packages 200: masterchain block \1 commits it, but the packages end before it",
        done.stderr,
    )
    assert stop is not None


def test_a_damaged_proof_is_a_hole(demo_node: Path, tmp_path: Path) -> None:
    node = tmp_path / "db"
    shutil.copytree(demo_node, node)
    path = node / "archive/packages/arch0000/archive.00200.pack"
    flip_file(path, path.read_bytes().index(b"proof_(-1,8000000000000000,230)") + 400)
    done = run("--node", node, "--lake", tmp_path / "lake", "--range", "229:231")
    assert done.exit_code == 3
    assert "hole at masterchain 230: BlockCorrupt" in done.stderr
    assert "the proof of the block is damaged" in done.stderr
