"""The commands of ``tonlake rebuild``: one for each stage of derivation."""

from __future__ import annotations

from tonlake.ingest.command import ingest
from tonlake.ingest.derive.stages import STAGES
from tonlake.lake.command.cli import rebuild_group


def test_every_stage_has_a_command() -> None:
    assert ingest.commands  # they join the group when this module is loaded
    for stage in STAGES:
        command = rebuild_group.commands[stage.name]
        options = {option for param in command.params for option in param.opts}
        assert ("--all" in options) == stage.has_versions
        assert command.help
        assert stage.name in (command.epilog or "")
