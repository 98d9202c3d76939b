"""Traces written without structs equal those written from structs."""

import msgspec
import pytest

from tonlake.api.request.call import Call
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.page.trace_page import answer_page, write_page
from tonlake.api.v3.route.trace import TracesQuery, _find_traces, _read_members

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")


def test_traces_written_and_rendered_are_equal(call: Call) -> None:
    """Even where one in three is shown as one that is too large."""
    rows = _find_traces(call, TracesQuery(limit=1000, offset=0))
    members = _read_members(call, rows)
    assert max(map(len, members.values())) > 5
    for row in rows[::3]:
        del members[row["trace_id"]]
    written, rendered = write_page(call, rows, members), answer_page(call, rows, members)
    assert msgspec.json.encode(written.traces) == msgspec.json.encode(rendered.traces)
    assert written.named == rendered.named
    assert len(written.named) > 1
