"""Writes each action as a sentence, and computes the signed amounts that it moved for an account.

``sentences.txt`` has one template per action type, ``moves.txt`` what moves in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from tonlake.api.explorer.words.form import describe_opcode, read_opcode, write_count, write_units
from tonlake.api.explorer.words.names import Names
from tonlake.api.explorer.words.outcome import explain_new_bounce
from tonlake.api.text.encoding import encode_number
from tonlake.api.v3.resource.action import Action
from tonlake.ingest.derive.action.pattern import BOUNCES

Details = dict[str, Any]

_SEGMENT = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_FIELD = re.compile(r"\{([^}]+)\}")
_ACCOUNT = re.compile(r"-?[0-9]{1,10}:[0-9A-F]{64}")
_UNLIKE = "unlike "
MAX_TEXT_CHARACTERS = 300
"""Comments are untrusted text; longer ones are cut."""

_UNKNOWN = "an unknown account"
_EXCHANGES = {"stonfi": "STON.fi", "stonfi_v2": "STON.fi v2", "dedust": "DeDust", "tonco": "TONCO"}
"""Display names of decentralised exchanges; others are shown as in the API."""

_NEXT_ORDER = str((1 << 256) - 1)
"""Means the next free order number (multisig v2, ``MAX_ORDER_SEQNO``)."""


class Phrase(msgspec.Struct, frozen=True):
    """A part of a sentence; ``kind`` is text, account (``text`` is raw), value or quote."""

    kind: str
    text: str


class Wording(msgspec.Struct, frozen=True):
    """Alternating texts and fields, beginning with a text; optional ones may be left out."""

    pieces: tuple[str, ...]
    optional: bool


class WrittenAction(msgspec.Struct, frozen=True):
    """An action, written as a sentence."""

    parts: list[Phrase]
    action: Action


def join_parts(parts: Iterable[Phrase], name: Callable[[str], str]) -> str:
    """Return a sentence as plain text; ``name`` writes the accounts in it."""
    return "".join(name(part.text) if part.kind == "account" else part.text for part in parts)


@cache
def load_sentences() -> Mapping[str, tuple[Wording, ...]]:
    """Return the sentence template of each action type, from ``sentences.txt``."""
    return {kind: parse_sentence(words) for kind, words in _read_lines("sentences.txt")}


def _read_lines(name: str) -> Iterator[tuple[str, str]]:
    """Yield action type and text of each line of a file beside this one."""
    text = files("tonlake.api.explorer.words").joinpath(name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            kind, _, words = line.partition(": ")
            yield kind, words


def parse_sentence(text: str) -> tuple[Wording, ...]:
    """Parse a sentence template; the header of ``sentences.txt`` describes the grammar."""
    return tuple(
        Wording(tuple(_FIELD.split(inner or plain)), optional=bool(inner))
        for inner, plain in _SEGMENT.findall(text)
    )


def write_actions(actions: Iterable[Action], names: Names) -> list[WrittenAction]:
    """Write actions as sentences; ``names`` must have learnt their accounts."""
    return [WrittenAction(write_action(action, names), action) for action in actions]


def write_action(action: Action, names: Names) -> list[Phrase]:
    """Write an action as a sentence."""
    is_bounce = (
        action.type == "call_contract" and read_opcode(action.details.get("opcode")) in BOUNCES
    )
    segments = load_sentences().get("bounce" if is_bounce else action.type)
    if segments is None:
        return _write_plainly(action)
    details = action.details
    if is_bounce:
        details = details | {"reason": _explain_bounce(details, names)}
    parts: list[Phrase] = []
    for segment in segments:
        parts += _fill(segment, details, names) or ()
    return parts


def _explain_bounce(details: Details, names: Names) -> str | None:
    """Return why a message came back; None for bounces of the old form, which do not say."""
    code = details.get("exit_code")
    if code is None:
        return None
    interfaces = names.interfaces(str(details.get("source")))
    return explain_new_bounce(details.get("bounced_by_phase"), code, interfaces)


def _fill(segment: Wording, details: Details, names: Names) -> list[Phrase] | None:
    """Return the parts of a segment; None if it is optional and a value is missing."""
    parts = []
    for at, piece in enumerate(segment.pieces):
        if at % 2 == 0:
            parts += [Phrase("text", piece)] if piece else []
            continue
        name, _, form = piece.partition(" ")
        value = find_field(details, name)
        if form.startswith(_UNLIKE):
            other, form = form.removeprefix(_UNLIKE), ""
            value = None if value == details.get(other) else value
        if segment.optional and (value is None or value == ""):
            return None
        parts.append(_show(value, form, details, names))
    return parts


def _show(value: object, form: str, details: Details, names: Names) -> Phrase:
    amount = _show_amount(value, form, details, names)
    if amount is not None:
        return Phrase("value", amount)
    text = encode_number(value)
    if form == "opcode" and isinstance(value, str | int):
        text = describe_opcode(value)
    if form == "order" and text is not None:
        text = "the next order" if text == _NEXT_ORDER else f"order {text}"
    if form == "exchange" and text is not None:
        text = _EXCHANGES.get(text, text)
    if text is None:
        return Phrase("text", _UNKNOWN if not form else "unknown")
    if not form:
        return Phrase("account" if _ACCOUNT.fullmatch(text) else "text", text)
    return Phrase("quote" if form == "quoted" else "text", text[:MAX_TEXT_CHARACTERS])


def _show_amount(value: object, form: str, details: Details, names: Names) -> str | None:
    """Format an amount with its unit, or a unit; None for other forms."""
    if form == "TON":
        return names.amount(_number(value))
    if form.startswith("of "):
        asset = find_field(details, form.removeprefix("of "))
        return names.amount(_number(value), encode_number(asset))
    if form == "currencies" and isinstance(value, dict):
        amounts = value.items()
        return ", ".join(f"{write_count(each)} of extra currency {key}" for key, each in amounts)
    return names.symbol(encode_number(value)) if form == "symbol" else None


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _write_plainly(action: Action) -> list[Phrase]:
    """Describe an action without a template by its type and the accounts in it."""
    parts = [Phrase("text", action.type.replace("_", " "))]
    named = [
        text
        for text in action.details.values()
        if isinstance(text, str) and _ACCOUNT.fullmatch(text)
    ]
    for at, text in enumerate(dict.fromkeys(named)):
        parts += [Phrase("text", ", " if at else " between "), Phrase("account", text)]
    return parts


IN, OUT, BOTH, NEITHER = "in", "out", "both", "neither"
DIRECTIONS = {IN: "received", OUT: "sent", BOTH: "both", NEITHER: "neither"}
"""Directions of an action as seen from an account, with their labels on pages."""

TON, NFT, EXTRA_CURRENCY = "TON", "NFT", "extra currency"
"""Assets other than jettons; a jetton is identified by the raw address of its master."""


class MovedFields(NamedTuple):
    """Fields of an action's details with sender, receiver, amount and asset of a transfer.

    ``asset`` is TON, NFT (``amount`` is the item), an extra currency (``amount`` maps ids to
    amounts), or the field with a jetton's address, where None means TON.
    """

    giver: str | None
    taker: str | None
    amount: str
    asset: str = TON


MOVES: Mapping[str, tuple[MovedFields, ...]] = {
    kind: tuple(
        msgspec.convert([None if name == "-" else name for name in move.split(", ")], MovedFields)
        for move in moves.split("; ")
    )
    for kind, moves in _read_lines("moves.txt")
}
"""Transfers by action type; other types have neither direction nor amount."""

_MESSAGES = ("ton_transfer", "call_contract")
REPEATED_BY: dict[str, tuple[str, ...]] = {
    "contract_deploy": _MESSAGES,
    "vesting_send_message": (*_MESSAGES, "contract_deploy"),
}
"""Types that show the amount of a message, and the types of actions that may show it, too."""


class Movement(msgspec.Struct, frozen=True):
    """One asset that an account received or sent; ``amount`` in smallest units, None if unknown."""

    gained: bool
    asset: str
    amount: int | None
    item: str | None
    """The NFT item; None for assets with an amount."""

    other: str | None
    """The other party, if the action names one."""


def list_movements(action: Action, account: str) -> list[Movement]:
    """Return the movements of an action from or to a raw address; [] if the action failed."""
    found: list[Movement] = []
    for move in MOVES.get(action.type, ()) if action.success else ():
        giver, taker = (_read(action.details, name) for name in (move.giver, move.taker))
        if giver == taker:
            continue  # the asset does not move
        if giver == account:
            found += _measure(action.details, move, taker, gained=False)
        if taker == account:
            found += _measure(action.details, move, giver, gained=True)
    return found


def is_repeated(action: Action, other: Action, account: str) -> bool:
    """Return whether another action shows the same amount of the same message.

    An action of a vesting contract includes the transaction that sends the message; a deployment
    includes only the transactions of its message.
    """
    if other.type not in REPEATED_BY.get(action.type, ()):
        return False
    if action.trace_id != other.trace_id:
        return False
    own, others = set(action.transactions), set(other.transactions)
    is_same = own == others if action.type == "contract_deploy" else not own.isdisjoint(others)
    return is_same and list_movements(action, account) == list_movements(other, account)


def name_direction(movements: list[Movement]) -> str:
    """Return whether an account received, sent, did both or neither."""
    signs = {movement.gained for movement in movements}
    if len(signs) == 2:  # noqa: PLR2004 - received and sent
        return BOTH
    return NEITHER if not signs else IN if True in signs else OUT


def write_amount(movement: Movement, names: Names) -> tuple[str, str]:
    """Return the signed amount in units, and the name of the asset."""
    sign = "+" if movement.gained else "-"
    if movement.item is not None:
        return f"{sign}1", f"NFT {names.label(movement.item)}"
    if movement.asset.startswith(EXTRA_CURRENCY):
        return sign + write_count(movement.amount or 0), f"of {movement.asset}"
    jetton = None if movement.asset == TON else movement.asset
    if movement.amount is None:
        return f"{sign}?", names.unit(jetton)
    return sign + write_units(movement.amount, names.digits(jetton)), names.unit(jetton)


def _measure(
    details: dict[str, Any], move: MovedFields, other: str | None, *, gained: bool
) -> list[Movement]:
    if move.asset == EXTRA_CURRENCY:
        amounts: dict[str, Any] = details.get(move.amount) or {}
        return [
            Movement(gained, f"{EXTRA_CURRENCY} {name}", int(amount), None, other)
            for name, amount in amounts.items()
        ]
    value = _read(details, move.amount)
    if move.asset == NFT:
        return [] if value is None else [Movement(gained, NFT, None, value, other)]
    known = value is not None and value.isdecimal()
    if value is None and ("." in move.amount or (other is None and move.amount == "value")):
        return []  # the whole object is missing, or the message is external
    asset = TON if move.asset == TON else _read(details, move.asset) or TON
    return [Movement(gained, asset, int(value or 0) if known else None, None, other)]


def find_field(details: dict[str, Any], path: str) -> object:
    """Return the value at a dotted path; None if any part is missing."""
    found: Any = details
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _read(details: dict[str, Any], path: str | None) -> str | None:
    return encode_number(find_field(details, path)) if path else None
