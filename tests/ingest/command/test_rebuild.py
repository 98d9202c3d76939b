"""The commands of ``tonlake rebuild``: one for each stage of derivation."""

from __future__ import annotations

from tests.commands import find_command
from tonlake.ingest.derive.stages import STAGES


def test_every_stage_has_a_command() -> None:
    for stage in STAGES:
        command = find_command(f"rebuild {stage.name}")
        options = {option for param in command.params for option in param.opts}
        assert ("--all" in options) == stage.has_versions
        assert command.help
        assert stage.name in (command.epilog or "")
