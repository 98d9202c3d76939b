"""The garbage collector is off only for a while."""

import gc

import pytest

from tonlake.ingest.decode.rows import without_collector


def test_the_collector_works_again_afterwards() -> None:
    with without_collector():
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled(), "whoever began it ends it"
    assert gc.isenabled()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), without_collector():
        int("bad")
    assert gc.isenabled()
