"""What a client of a stream asks for, and whether an event is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import (
    Addresses,
    Arguments,
    Converter,
    Hashes,
    Query,
    Text,
    Texts,
    read_query,
)
from tonlake.api.stream.event import (
    FINALITIES,
    FINALIZED,
    INVALIDATED,
    TYPES,
    UNDONE,
    Cursor,
    Event,
    parse_cursor,
)
from tonlake.api.text.address import render_raw
from tonlake.ingest.derive.action.version import expand_names

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_FILTERS = 1000
"""Most addresses, and most messages, of one subscription."""


class StreamQuery(Query, frozen=True, kw_only=True):
    """Filters of events; what is left out filters nothing, but for finality."""

    types: Texts = ()
    addresses: Addresses = ()
    trace_external_hash_norms: Hashes = ()
    min_finality: Text = None
    action_types: Texts = ()
    supported_action_types: Texts = ()
    last_event_id: Annotated[Cursor | None, Converter(parse_cursor, {"type": "string"})] = None


class Subscription(msgspec.Struct, frozen=True):
    """What a client wants to be sent."""

    types: frozenset[str]
    accounts: frozenset[str]
    norms: frozenset[bytes]
    min_finality: int
    action_types: frozenset[str]
    known_types: frozenset[str]

    @property
    def is_open(self) -> bool:
        """Whether events about all accounts are wanted."""
        return not (self.accounts or self.norms)

    def accepts(self, event: Event) -> bool:
        """Tell whether an event is wanted."""
        if event.kind == UNDONE:
            return True
        if event.finality < self.min_finality:
            return False
        if event.kind not in self.types and event.kind != INVALIDATED:
            return False
        if event.action is not None and not self._accepts_action(*event.action):
            return False
        return (
            self.is_open or event.norm in self.norms or not self.accounts.isdisjoint(event.accounts)
        )

    def _accepts_action(self, kind: str, around: frozenset[str]) -> bool:
        wanted = self.action_types or self.known_types
        return kind in wanted and self.known_types.isdisjoint(around)


def make_subscription(query: StreamQuery) -> Subscription:
    """Check filters and return what they mean.

    Raises:
        RequestInvalid: an unknown type or finality, or too many filters.
    """
    for name in query.types:
        if name not in TYPES:
            raise RequestInvalid(f"unknown event type {name[:80]!a}: {', '.join(TYPES)}")
    finality = query.min_finality or FINALITIES[FINALIZED]
    if finality not in FINALITIES:
        raise RequestInvalid(f"min_finality should be one of: {', '.join(FINALITIES)}")
    if max(len(query.addresses), len(query.trace_external_hash_norms)) > MOST_FILTERS:
        raise RequestInvalid(f"a subscription has at most {MOST_FILTERS} addresses")
    return Subscription(
        types=frozenset(query.types or TYPES),
        accounts=frozenset(render_raw(one.workchain, one.account) for one in query.addresses),
        norms=frozenset(query.trace_external_hash_norms),
        min_finality=FINALITIES.index(finality),
        action_types=frozenset(query.action_types),
        known_types=expand_names(query.supported_action_types or ["latest"]),
    )


def read_json_query(values: object) -> StreamQuery:
    """Read filters from a JSON object: lists of text, or text.

    Raises:
        RequestInvalid: it is no object, or a value has another form.
    """
    if not isinstance(values, dict):
        raise RequestInvalid("a subscription is a JSON object")
    pairs = [(name, text) for name in values for text in _list_texts(name, values[name])]
    return read_query(StreamQuery, Arguments(pairs))


def _list_texts(name: str, value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON
    if name not in StreamQuery.__struct_fields__ or value is None:
        return []
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise RequestInvalid(f'schema: error converting value for "{name}"')
    return texts
