"""What tests of decoders share."""

import pytest

from tonlake.ingest.decode.cell.tree import CellTree


@pytest.fixture
def tree() -> CellTree:
    return CellTree()
