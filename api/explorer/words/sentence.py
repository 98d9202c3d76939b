"""Writes each action as a sentence; ``sentences.txt`` has one template per action type."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from tonlake.api.explorer.words.form import describe_opcode, read_opcode, write_count
from tonlake.api.explorer.words.movement import find_field
from tonlake.api.explorer.words.names import Names
from tonlake.api.explorer.words.outcome import explain_new_bounce
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
_EXCHANGES = {
    "stonfi": "STON.fi",
    "stonfi_v2": "STON.fi v2",
    "dedust": "DeDust",
    "tonco": "TONCO",
}
"""Display names of decentralised exchanges; others are shown as in the API."""

_NEXT_ORDER = str((1 << 256) - 1)
"""Means the next free order number (multisig v2, ``MAX_ORDER_SEQNO``)."""


class Part(msgspec.Struct, frozen=True):
    """A part of a sentence; ``kind`` is text, account (``text`` is raw), value or quote."""

    kind: str
    text: str


class Segment(msgspec.Struct, frozen=True):
    """Alternating texts and fields, beginning with a text; optional ones may be left out."""

    pieces: tuple[str, ...]
    optional: bool


class WrittenAction(msgspec.Struct, frozen=True):
    """An action written as a sentence."""

    parts: list[Part]
    success: bool
    trace_id: str
    utime: int
    type: str


@cache
def load_sentences() -> Mapping[str, tuple[Segment, ...]]:
    """Return the sentence template of each action type, from ``sentences.txt``."""
    text = files("tonlake.api.explorer.words").joinpath("sentences.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        kind: parse_sentence(words) for kind, _, words in (each.partition(": ") for each in lines)
    }


def parse_sentence(text: str) -> tuple[Segment, ...]:
    """Parse a sentence template; the header of ``sentences.txt`` describes the grammar."""
    return tuple(
        Segment(tuple(_FIELD.split(inner or plain)), optional=bool(inner))
        for inner, plain in _SEGMENT.findall(text)
    )


def write_actions(actions: Iterable[Action], names: Names) -> list[WrittenAction]:
    """Write actions as sentences; ``names`` must have learnt their accounts."""
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
    parts: list[Part] = []
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


def _fill(segment: Segment, details: Details, names: Names) -> list[Part] | None:
    """Return the parts of a segment; None if it is optional and a value is missing."""
    parts = []
    for at, piece in enumerate(segment.pieces):
        if at % 2 == 0:
            parts += [Part("text", piece)] if piece else []
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
    return Part("quote" if form == "quoted" else "text", text[:MAX_TEXT_CHARACTERS])


def _show_amount(value: object, form: str, details: Details, names: Names) -> str | None:
    """Format an amount with its unit, or a unit; None for other forms."""
    if form == "TON":
        return names.amount(_number(value))
    if form.startswith("of "):
        asset = find_field(details, form.removeprefix("of "))
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


def _write_plainly(action: Action) -> list[Part]:
    """Describe an action without a template by its type and the accounts in it."""
    parts = [Part("text", action.type.replace("_", " "))]
    named = [
        text
        for text in action.details.values()
        if isinstance(text, str) and _ACCOUNT.fullmatch(text)
    ]
    for at, text in enumerate(dict.fromkeys(named)):
        parts += [Part("text", ", " if at else " between "), Part("account", text)]
    return parts
