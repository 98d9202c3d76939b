"""The commands of ``tonlake rebuild``: one for each stage of derivation."""

from pathlib import Path

from tests import commands
from tests.commands import find_command
from tests.lake.chain import Chain, commit_chain
from tonlake.ingest.derive.stages import STAGES
from tonlake.lake.index.builder.rebuild import rebuild_index


def test_every_stage_has_a_command() -> None:
    for stage in STAGES:
        command = find_command(f"rebuild {stage.name}")
        options = {option for param in command.params for option in param.opts}
        assert ("--all" in options) == stage.has_versions


def test_a_rebuild_says_that_the_index_is_older(tmp_path: Path) -> None:
    commit_chain(tmp_path, Chain(3), 1, 6)
    rebuild_index(tmp_path)
    assert "older" not in run("status", tmp_path)
    assert "1 segment older" in run("rebuild traces", tmp_path)
    assert "1 segment older" in run("status", tmp_path)
    run("rebuild index", tmp_path)
    assert "older" not in run("status", tmp_path)


def run(command: str, lake: Path) -> str:
    done = commands.run(*command.split(), "--lake", lake)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())
