"""Clients by what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.api.stream.event import UNDONE

if TYPE_CHECKING:
    from tonlake.api.stream.client import Client
    from tonlake.api.stream.event import Event


class ClientIndex:
    """Clients by what they ask for, so that an event is not offered to all of them."""

    def __init__(self) -> None:
        """Know no clients."""
        self.clients: set[Client] = set()
        self._open: set[Client] = set()
        self._by_account: dict[str, set[Client]] = {}
        self._by_norm: dict[bytes, set[Client]] = {}

    @property
    def types(self) -> frozenset[str]:
        """The types that anybody wants."""
        return frozenset[str]().union(*(client.subscription.types for client in self.clients))

    def add(self, client: Client) -> None:
        """Take in a client."""
        self.clients.add(client)
        if client.subscription.is_open:
            self._open.add(client)
        for account in client.subscription.accounts:
            self._by_account.setdefault(account, set()).add(client)
        for norm in client.subscription.norms:
            self._by_norm.setdefault(norm, set()).add(client)

    def remove(self, client: Client) -> None:
        """Forget a client, if it is known."""
        if client not in self.clients:
            return
        self.clients.discard(client)
        self._open.discard(client)
        for account in client.subscription.accounts:
            self._by_account[account].discard(client)
            if not self._by_account[account]:
                del self._by_account[account]
        for norm in client.subscription.norms:
            self._by_norm[norm].discard(client)
            if not self._by_norm[norm]:
                del self._by_norm[norm]

    def find(self, event: Event) -> set[Client]:
        """Return all clients that may want an event."""
        if event.kind == UNDONE:
            return set(self.clients)
        found = set(self._open)
        for account in event.accounts:
            found |= self._by_account.get(account, set())
        if event.norm is not None:
            found |= self._by_norm.get(event.norm, set())
        return found
