"""Bags in frames are read as they were written, in any order."""

import io
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.segment.bags import TOGETHER, SegmentBags, write_bags
from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter


@given(st.lists(st.none() | st.binary(max_size=40), max_size=3 * TOGETHER), st.randoms())
def test_bags_are_read_as_they_were_written(bags: list[bytes | None], choices: Random) -> None:
    writer, stream = SegmentWriter(), io.BytesIO()
    write_bags(writer, pa.chunked_array([pa.array(bags, pa.binary())]))
    writer.write(stream, (1, 2))
    places = [at for at in range(len(bags)) for _ in range(2)]
    choices.shuffle(places)
    found = SegmentBags(SegmentFile(stream.getvalue(), "a segment")).read(places)
    assert found == [bags[place] for place in places]
