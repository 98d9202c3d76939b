"""The events of a stream that a pending trace gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.stream.body import make_action_event, make_trace_event, write_head
from tonlake.api.stream.event import PENDING, TRANSACTIONS, Event

if TYPE_CHECKING:
    from tonlake.api.v3.resource.pending_trace import PendingTrace


def make_events(trace: PendingTrace, types: frozenset[str]) -> list[Event]:
    """Return the events of a pending trace, in the order of those of blocks."""
    events = []
    for shown in trace.transactions.values():
        text = msgspec.json.encode(shown)
        body = write_head(TRANSACTIONS, trace.norm, PENDING) + b',"transactions":[%b]}' % text
        accounts = frozenset((shown.account,))
        events.append(
            Event(TRANSACTIONS, body, accounts=accounts, norm=trace.norm, finality=PENDING)
        )
    events.append(make_trace_event(trace.render(types), trace.norm, PENDING))
    events += [make_action_event(row, PENDING) for row in trace.action_rows]
    return events
