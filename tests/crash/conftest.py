"""What tests of several disks share."""

from collections.abc import Iterator
from unittest import mock

import pytest

from tests.crash.history import History
from tonlake.lake.commit import commit


@pytest.fixture
def frequent_checkpoints() -> Iterator[None]:
    with mock.patch.object(commit, "CHECKPOINT_COMMITS", 2):
        yield


@pytest.fixture(scope="module")
def history() -> History:
    return History()
