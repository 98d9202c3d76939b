"""Resolves names of accounts and tokens: labels, domains and token metadata."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import msgspec
from msgspec import Raw

from tonlake.api.errors import AddressInvalid
from tonlake.api.explorer.words.form import MAX_DIGITS, NANO_DIGITS, shorten, write_units
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import parse_address
from tonlake.api.v3.page.book import describe_addresses
from tonlake.api.v3.resource.answer import AddressBook, AddressBookRow, Metadata, TokenInfo
from tonlake.lake.duck.labels import Label, read_labels

MAX_NAME_CHARACTERS = 40
"""Names are untrusted text: longer ones are cut."""

_TOKENS = ("jetton_masters", "nft_collections", "nft_items")

_NO_LABELS: Mapping[str, Label] = MappingProxyType({})
load_labels = cache(read_labels)

_decode_book = msgspec.json.Decoder(AddressBook).decode
_WALLET, _VESTING = "wallet_", "wallet_vesting"


def list_certain(interfaces: Sequence[str]) -> list[str]:
    """Return the interfaces of a contract without wallet versions that it merely resembles.

    A wallet with known code has one version. Other code gets all versions whose get-methods it
    has: ``seqno`` alone, which the configuration contract also has, matches four versions.
    """
    versions = {name for name in interfaces if name.startswith(_WALLET) and name != _VESTING}
    return [name for name in interfaces if len(versions) == 1 or name not in versions]


class Names:
    """Friendly addresses, domains and token names by raw address."""

    def __init__(
        self, call: Call, labels: Mapping[str, Label] = _NO_LABELS, *, full: bool = False
    ) -> None:
        """Take labels by raw address; unknown addresses are looked up when needed.

        With ``full``, accounts without a name are shown by their whole address.
        """
        self._call, self._labels, self._full = call, labels, full
        self._book: AddressBook = {}
        self._tokens: dict[str, TokenInfo] = {}

    def learn(self, address_book: AddressBook | Raw, metadata: Metadata | None = None) -> None:
        """Add the address book and metadata of a response."""
        if isinstance(address_book, Raw):
            address_book = _decode_book(address_book)
        self._book |= address_book
        for address, known in (metadata or {}).items():
            for info in known.token_info:
                if info.type in _TOKENS:
                    self._tokens[address] = info

    def friendly(self, raw: str) -> str:
        """Return the user-friendly address; the raw one if there is none."""
        row = self._look_up(raw)
        return raw if row is None or row.user_friendly is None else row.user_friendly

    def label(self, raw: str) -> str:
        """Return the label, domain or token name of an account, or its abbreviated address."""
        known = self._labels.get(raw)
        if known is not None:
            return known.label[:MAX_NAME_CHARACTERS]
        row = self._look_up(raw)
        if row is not None and row.domain:
            return row.domain[:MAX_NAME_CHARACTERS]
        friendly = self.friendly(raw)
        return self.token_name(raw) or (friendly if self._full else shorten(friendly, 5))

    def interfaces(self, raw: str) -> list[str]:
        """Return the detected interfaces of an account's contract."""
        row = self._look_up(raw)
        return list_certain((row and row.interfaces) or ())

    def token_name(self, raw: str) -> str:
        """Return the name of a token contract, the domain of a domain NFT, or ""."""
        info = self._tokens.get(raw)
        if info is None:
            return ""
        return str(info.name or (info.extra or {}).get("domain", ""))[:MAX_NAME_CHARACTERS]

    def has_picture(self, raw: str) -> bool:
        """Return whether the metadata of a token contract has a picture."""
        info = self._tokens.get(raw)
        return info is not None and bool(info.image)

    def symbol(self, raw: str | None) -> str:
        """Return the symbol of a jetton by its master, else its address; "TON" for None."""
        if raw is None:
            return "TON"
        return self.own_symbol(raw) or shorten(self.friendly(raw), 4)

    def unit(self, raw: str | None) -> str:
        """Return the unit to write after an amount of a jetton, or of TON for None."""
        known = raw is None or self.own_symbol(raw)
        return self.symbol(raw) if known else f"units of {self.symbol(raw)}"

    def own_symbol(self, raw: str) -> str:
        """Return the symbol in a jetton's metadata, else its name; "" without either."""
        info = self._tokens.get(raw)
        text = "" if info is None else info.symbol or info.name or ""
        return text[:MAX_NAME_CHARACTERS]

    def digits(self, raw: str | None) -> int:
        """Return the decimal places of a jetton by its master, 9 if its metadata has none."""
        info = None if raw is None else self._tokens.get(raw)
        if info is None:
            return NANO_DIGITS if raw is None else 0
        extra = info.extra or {}
        text = str(extra.get("decimals", NANO_DIGITS))
        known = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_DIGITS))
        return int(text) if known and int(text) <= MAX_DIGITS else NANO_DIGITS

    def amount(self, amount: str | int | None, jetton: str | None = None) -> str:
        """Format an amount in units with its symbol; in TON if ``jetton`` is None."""
        if amount is None:
            return f"an unknown amount of {self.symbol(jetton)}"
        return f"{write_units(amount, self.digits(jetton))} {self.unit(jetton)}"

    def _look_up(self, raw: str) -> AddressBookRow | None:
        if raw not in self._book:
            try:
                address = parse_address(raw)
            except AddressInvalid:
                return None
            self._book[raw] = describe_addresses(self._call, [address])[address]
        return self._book[raw]
