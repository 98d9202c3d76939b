"""A trace of a snapshot: its actions as sentences and its messages as a tree."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import count
from threading import RLock
from typing import Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.explorer.frame import ask_or_say, fill_template
from tonlake.api.explorer.transaction import MAX_BOXES, ROW, draw_tree, find_trace, place_tree
from tonlake.api.explorer.words.form import name_call, write_ton
from tonlake.api.explorer.words.names import Names, load_labels
from tonlake.api.explorer.words.sentence import WrittenAction, join_parts, write_actions
from tonlake.api.python.source import Opened
from tonlake.api.request.call import parse_hash
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.resource.action import Action
from tonlake.api.v3.resource.answer import Trace as TraceAnswer
from tonlake.api.v3.route.trace import ActionsQuery, TracesQuery, answer_traces, get_actions

PAGE_ACTIONS = 1000
"""Actions read per query."""

_FRAME_PX, _ACTION_PX = 110, 42
"""Height around the tree in a notebook, and of one action."""


class TraceAction(msgspec.Struct, frozen=True):
    """An action: type, sentence, and the details as in API v3."""

    type: str
    text: str
    success: bool
    time: datetime
    details: dict[str, Any]

    def __str__(self) -> str:
        """Return the sentence, marked if the action failed."""
        return self.text if self.success else f"{self.text} (failed)"


class Trace:
    """A trace as of the snapshot of a lake; thread-safe."""

    def __init__(self, opened: Opened, found: TraceAnswer, names: Names) -> None:
        """Take the trace as in API v3; use ``Lake.trace`` instead."""
        self._opened, self._found, self._names = opened, found, names
        self._lock = RLock()

    @property
    def trace_id(self) -> str:
        """Hash of its first transaction, in base64."""
        return str(self._found.trace_id)

    @property
    def state(self) -> str:
        """One of complete, pending and broken."""
        return self._found.trace_info.trace_state

    def __repr__(self) -> str:
        size = self._found.trace_info.transactions
        return f"<Trace {self.trace_id}: {self.state}, {size:,} transactions>"

    @cached_property
    def transactions(self) -> list[Transaction]:
        """Its transactions with messages, by logical time. Raises RequestInvalid if too many."""
        known = self._found.transactions
        if not known:
            raise RequestInvalid(self._found.warning or "the trace is too large to show")
        return [known[each] for each in self._found.transactions_order or ()]

    @property
    def actions(self) -> list[TraceAction]:
        """Its actions, in order; raise NotDerived if the traces of this lake are not classified."""
        with self._lock:
            return [
                TraceAction(
                    type=each.action.type,
                    text=join_parts(each.parts, self._names.label),
                    success=each.action.success,
                    time=datetime.fromtimestamp(each.action.end_utime, UTC),
                    details=each.action.details,
                )
                for each in self._written
            ]

    @cached_property
    def _written(self) -> list[WrittenAction]:
        """The actions with their sentences; the caller must hold the lock."""
        return write_actions(list(self._read_actions()), self._names)

    def _read_actions(self) -> Iterator[Action]:
        trace_id = parse_hash(self.trace_id)
        with self._opened.source.naming_faults():
            call = self._opened.call()
            for offset in count(0, PAGE_ACTIONS):
                query = ActionsQuery(
                    trace_id=(trace_id,), limit=PAGE_ACTIONS, offset=offset, sort="asc"
                )
                page = get_actions(call, query)
                self._names.learn(page.address_book, page.metadata)
                yield from page.actions
                if len(page.actions) < PAGE_ACTIONS:
                    return

    def tree(self) -> str:
        """Return its transactions as lines of text, each below the one that sent its message.

        A line has the account, the name of the call, the value in TON, and ✗ if it failed. Raises
        RequestInvalid if the trace is too large to show.
        """
        lines = []
        with self._lock, self._opened.source.naming_faults():
            for each, depth, _row in place_tree(self.transactions):
                message = each.in_msg
                call = name_call(message) or each.description.type
                value = "" if message is None or message.value is None else write_ton(message.value)
                mark = " ✗" if each.description.aborted else ""
                words = f"{self._names.label(each.account)}  {call}  {value}".rstrip()
                lines.append(f"{'  ' * depth}{'└ ' if depth else ''}{words}{mark}")
        return "\n".join(lines)

    def picture(self) -> str:
        """Return an HTML page with actions and tree. Raises RequestInvalid if too large."""
        style = files("tonlake.api.explorer").joinpath("static", "explorer.css")
        with self._lock, self._opened.source.naming_faults():
            values = {
                "tree": draw_tree(self.transactions, self._names),
                "actions": ask_or_say(lambda: self._written),
                "trace": self._found,
                "names": self._names,
                "style": style.read_text(encoding="utf-8"),
            }
            return fill_template("trace_picture.html", values)

    def _repr_html_(self) -> str | None:
        """Return the page in an iframe for notebooks; None if the trace is too large."""
        if not self._found.transactions:
            return None
        page = self.picture()
        rows = max(row for _each, _depth, row in place_tree(self.transactions[:MAX_BOXES])) + 1
        actions = ask_or_say(lambda: len(self.actions))
        height = _FRAME_PX + ROW * rows + _ACTION_PX * (actions if isinstance(actions, int) else 1)
        return (
            f'<iframe srcdoc="{escape(page)}" sandbox title="Trace" '
            f'style="width:100%;height:{height}px;border:0"></iframe>'
        )


def open_trace(opened: Opened, any_hash: bytes) -> Trace:
    """Return the trace that contains a transaction or message; raises as ``Lake.trace``."""
    call = opened.call()
    query = TracesQuery(trace_id=(find_trace(call, any_hash),), limit=1, offset=0)
    found = answer_traces(call, query)
    names = Names(call, load_labels(call.settings.lake))
    names.learn(found.address_book, found.metadata)
    return Trace(opened, found.traces[0], names)
