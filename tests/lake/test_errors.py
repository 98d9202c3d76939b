"""Advice in errors of the lake."""

import errno
import os

import pytest

from tonlake.lake.errors import LakeCorrupt


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "give the user that runs tonlake access to it"),
        (errno.EMFILE, "allow more open files"),
        (errno.ENOENT, "restore it from a copy, or ingest into a new lake"),
        (errno.EIO, "restore it from a copy, or ingest into a new lake"),
    ],
)
def test_a_missing_right_is_no_damage(number: int, advice: str) -> None:
    text = str(LakeCorrupt.unreadable("blocks/1.parquet", OSError(number, os.strerror(number))))
    assert advice in text
    assert ("new lake" in text) is ("new lake" in advice)
    assert f"cannot be read ({os.strerror(number)})" in text
