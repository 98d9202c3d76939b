"""What tests of actions share."""

import pytest

from tests.ingest.derive.action.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
