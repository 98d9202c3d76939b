"""The folder of a lake as commands take it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tonlake.lake.duck.connection import name_root
from tonlake.lake.errors import LakeMisplaced

if TYPE_CHECKING:
    from click import Context, Parameter


class LakeFolder(click.Path):
    """A folder that may be, or become, a lake: one whose path DuckDB can take."""

    def convert(
        self, value: str | os.PathLike[str], param: Parameter | None, ctx: Context | None
    ) -> Path:
        """Return the path, or end the command with what is wrong with it."""
        folder = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            name_root(folder)
        except LakeMisplaced as error:
            self.fail(str(error), param, ctx)
        return folder
