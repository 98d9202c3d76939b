"""Names of accounts and tokens on pages, and one sentence for each type of action."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import AddressInvalid
from tonlake.api.explorer.words.form import (
    MOST_DIGITS,
    NANO_DIGITS,
    describe_opcode,
    read_opcode,
    shorten,
    write_count,
    write_units,
)
from tonlake.api.text.address import parse_address
from tonlake.api.v3.page.book import describe_addresses
from tonlake.ingest.derive.action.pattern import BOUNCE_OPCODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.request.call import Call
    from tonlake.api.v3.resource.action import Action
    from tonlake.api.v3.resource.answer import AddressBook, AddressBookRow, Metadata, TokenInfo

MOST_NAME_CHARACTERS = 40
"""Names are strangers' texts: what is longer is cut."""

_TOKENS = ("jetton_masters", "nft_collections", "nft_items")


class Names:
    """Friendly forms, domains and token names by raw address."""

    def __init__(self, call: Call, *, full: bool = False) -> None:
        """Begin with nothing; addresses that no answer described are looked up when needed.

        With ``full``, accounts without a name are called by their whole address.
        """
        self._call, self._full = call, full
        self._book: AddressBook = {}
        self._tokens: dict[str, TokenInfo] = {}

    def learn(self, book: AddressBook, metadata: Metadata | None = None) -> None:
        """Remember what an answer has about the addresses in it."""
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
        friendly = self.friendly(raw)
        return self.token_name(raw) or (friendly if self._full else shorten(friendly, 5))

    def interfaces(self, raw: str) -> list[str]:
        """Return what an account's contract is known to be."""
        row = self._look_up(raw)
        return [] if row is None else row.interfaces or []

    def token_name(self, raw: str) -> str:
        """Return the name of a token contract, of a domain's NFT the domain, or ""."""
        info = self._tokens.get(raw)
        if info is None:
            return ""
        return str(info.name or (info.extra or {}).get("domain", ""))[:MOST_NAME_CHARACTERS]

    def has_picture(self, raw: str) -> bool:
        """Return whether a token contract names a picture."""
        info = self._tokens.get(raw)
        return info is not None and bool(info.image)

    def symbol(self, raw: str | None) -> str:
        """Return the symbol of a jetton by its master, else its address; None is TON itself."""
        if raw is None:
            return "TON"
        return self._find_symbol(raw) or shorten(self.friendly(raw), 4)

    def unit(self, raw: str | None) -> str:
        """Return what stands behind an amount of a jetton, or of TON."""
        known = raw is None or self._find_symbol(raw)
        return self.symbol(raw) if known else f"units of {self.symbol(raw)}"

    def _find_symbol(self, raw: str) -> str:
        info = self._tokens.get(raw)
        text = "" if info is None else info.symbol or info.name or ""
        return text[:MOST_NAME_CHARACTERS]

    def digits(self, raw: str | None) -> int:
        """Return the decimal places of a jetton by its master, 9 where it names none."""
        info = None if raw is None else self._tokens.get(raw)
        if info is None:
            return NANO_DIGITS if raw is None else 0
        extra = info.extra or {}
        text = str(extra.get("decimals", NANO_DIGITS))
        known = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_DIGITS))
        return int(text) if known and int(text) <= MOST_DIGITS else NANO_DIGITS

    def amount(self, amount: str | int | None, jetton: str | None = None) -> str:
        """Return an amount in units with its symbol; of TON without a jetton."""
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


Details = dict[str, Any]

_SEGMENT = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_FIELD = re.compile(r"\{([^}]+)\}")
_ACCOUNT = re.compile(r"-?[0-9]{1,10}:[0-9A-F]{64}")
MOST_TEXT_CHARACTERS = 300
"""Comments are strangers' texts; what is longer is cut."""

_UNKNOWN = "an unknown account"
_EXCHANGES = {
    "stonfi": "STON.fi",
    "stonfi_v2": "STON.fi v2",
    "dedust": "DeDust",
    "tonco": "TONCO",
}
"""What decentralised exchanges call themselves; others are named as the API does."""
_NEXT_ORDER = str((1 << 256) - 1)
"""Stands for the next free number of an order (multisig v2, ``MAX_ORDER_SEQNO``)."""


class Part(msgspec.Struct, frozen=True):
    """A piece of a sentence; ``kind`` is text, account (``text`` is raw), value or quote."""

    kind: str
    text: str


class Segment(msgspec.Struct, frozen=True):
    """Texts and fields in turn, a text first; optional ones may be left out."""

    pieces: tuple[str, ...]
    optional: bool


class WrittenAction(msgspec.Struct, frozen=True):
    """An action as a sentence."""

    parts: list[Part]
    success: bool
    trace_id: str
    utime: int
    type: str


@cache
def load_sentences() -> Mapping[str, tuple[Segment, ...]]:
    """Return the sentence of each type of action, from the packaged table."""
    text = files("tonlake.api.explorer.words").joinpath("sentences.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        kind: parse_sentence(words) for kind, _, words in (each.partition(": ") for each in lines)
    }


def parse_sentence(text: str) -> tuple[Segment, ...]:
    """Read the grammar that the table's head describes."""
    return tuple(
        Segment(tuple(_FIELD.split(inner or plain)), optional=bool(inner))
        for inner, plain in _SEGMENT.findall(text)
    )


def write_actions(actions: Iterable[Action], names: Names) -> list[WrittenAction]:
    """Return actions as sentences; the names in them have been learnt before."""
    return [
        WrittenAction(
            write_action(action, names),
            action.success,
            action.trace_id,
            action.end_utime,
            action.type,
        )
        for action in actions
    ]


def write_action(action: Action, names: Names) -> list[Part]:
    """Return the sentence of an action."""
    is_bounce = (
        action.type == "call_contract"
        and read_opcode(action.details.get("opcode")) == BOUNCE_OPCODE
    )
    segments = load_sentences().get("bounce" if is_bounce else action.type)
    if segments is None:
        return _write_plainly(action)
    parts: list[Part] = []
    for segment in segments:
        parts += _fill(segment, action.details, names) or ()
    return parts


def _fill(segment: Segment, details: Details, names: Names) -> list[Part] | None:
    """Return the parts of a segment; None if a value is missing and it can be left out."""
    parts = []
    for at, piece in enumerate(segment.pieces):
        if at % 2 == 0:
            parts += [Part("text", piece)] if piece else []
            continue
        name, _, form = piece.partition(" ")
        value = _find(details, name)
        if segment.optional and (value is None or value == ""):
            return None
        parts.append(_show(value, form, details, names))
    return parts


def _show(value: object, form: str, details: Details, names: Names) -> Part:
    amount = _show_amount(value, form, details, names)
    if amount is not None:
        return Part("value", amount)
    text = _text(value)
    if form == "opcode" and isinstance(value, str | int):
        text = describe_opcode(value)
    if form == "order" and text is not None:
        text = "the next order" if text == _NEXT_ORDER else f"order {text}"
    if form == "exchange" and text is not None:
        text = _EXCHANGES.get(text, text)
    if text is None:
        return Part("text", _UNKNOWN if not form else "unknown")
    if not form:
        return Part("account" if _ACCOUNT.fullmatch(text) else "text", text)
    return Part("quote" if form == "quoted" else "text", text[:MOST_TEXT_CHARACTERS])


def _show_amount(value: object, form: str, details: Details, names: Names) -> str | None:
    """Return an amount with its unit, or a unit; None for other forms."""
    if form == "TON":
        return names.amount(_number(value))
    if form.startswith("of "):
        asset = _find(details, form.removeprefix("of "))
        return names.amount(_number(value), _text(asset))
    if form == "currencies" and isinstance(value, dict):
        amounts = value.items()
        return ", ".join(f"{write_count(each)} of extra currency {key}" for key, each in amounts)
    return names.symbol(_text(value)) if form == "symbol" else None


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _find(details: Details, path: str) -> object:
    """Return a field; of an object's field, None where there is no such object."""
    found: Any = details
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _write_plainly(action: Action) -> list[Part]:
    """Return the name of a type without a sentence, and the accounts in it."""
    parts = [Part("text", action.type.replace("_", " "))]
    named = [
        text
        for text in action.details.values()
        if isinstance(text, str) and _ACCOUNT.fullmatch(text)
    ]
    for at, text in enumerate(dict.fromkeys(named)):
        parts += [Part("text", ", " if at else " between "), Part("account", text)]
    return parts
