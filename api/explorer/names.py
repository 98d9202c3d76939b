"""What pages call accounts and tokens: gathered from the answers that a page is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.api.errors import AddressInvalid
from tonlake.api.explorer.form import MOST_DIGITS, NANO_DIGITS, shorten, write_units
from tonlake.api.text.address import parse_address
from tonlake.api.v3.page.book import describe_addresses

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v3.resource.answer import AddressBook, AddressBookRow, Metadata, TokenInfo

MOST_NAME_CHARACTERS = 40
"""Names are strangers' texts: what is longer is cut."""

_TOKENS = ("jetton_masters", "nft_collections", "nft_items")


class Names:
    """Friendly forms, domains and token names by raw address."""

    def __init__(self, call: Call) -> None:
        """Begin with nothing; addresses that no answer described are looked up when needed."""
        self._call = call
        self._book: AddressBook = {}
        self._tokens: dict[str, TokenInfo] = {}

    def learn(self, book: AddressBook, metadata: Metadata | None = None) -> None:
        """Take what an answer says of the addresses in it."""
        self._book |= book
        for address, known in (metadata or {}).items():
            for info in known.token_info:
                if info.type in _TOKENS:
                    self._tokens[address] = info

    def friendly(self, raw: str) -> str:
        """Return the form people write; raw where there is none."""
        row = self._look_up(raw)
        return raw if row is None or row.user_friendly is None else row.user_friendly

    def label(self, raw: str) -> str:
        """Return what to call an account: its domain, its token's name, or its address cut."""
        row = self._look_up(raw)
        if row is not None and row.domain:
            return row.domain[:MOST_NAME_CHARACTERS]
        return self.token_name(raw) or shorten(self.friendly(raw), 5)

    def interfaces(self, raw: str) -> list[str]:
        """Return what an account's contract is known to be."""
        row = self._look_up(raw)
        return [] if row is None else row.interfaces or []

    def token_name(self, raw: str) -> str:
        """Return the name of a token contract, or ""."""
        info = self._tokens.get(raw)
        return (info.name or "")[:MOST_NAME_CHARACTERS] if info is not None else ""

    def symbol(self, raw: str | None) -> str:
        """Return the symbol of a jetton by its master; None is TON itself."""
        if raw is None:
            return "TON"
        info = self._tokens.get(raw)
        text = "" if info is None else info.symbol or info.name or ""
        return text[:MOST_NAME_CHARACTERS] or f"units of {shorten(self.friendly(raw), 4)}"

    def digits(self, raw: str | None) -> int:
        """Return the decimal places of a jetton by its master, 9 unless it says otherwise."""
        info = None if raw is None else self._tokens.get(raw)
        if info is None:
            return NANO_DIGITS if raw is None else 0
        extra = info.extra or {}
        text = str(extra.get("decimals", NANO_DIGITS))
        known = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_DIGITS))
        return int(text) if known and int(text) <= MOST_DIGITS else NANO_DIGITS

    def amount(self, amount: str | int | None, jetton: str | None = None) -> str:
        """Return an amount in whole units with its symbol; of TON without a jetton."""
        if amount is None:
            return f"an unknown amount of {self.symbol(jetton)}"
        return f"{write_units(amount, self.digits(jetton))} {self.symbol(jetton)}"

    def _look_up(self, raw: str) -> AddressBookRow | None:
        if raw not in self._book:
            try:
                address = parse_address(raw)
            except AddressInvalid:
                return None
            self._book[raw] = describe_addresses(self._call, [address])[address]
        return self._book[raw]
