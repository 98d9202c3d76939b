"""Actions in words: one sentence for each type, and a plain one for types without."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.explorer.names import Names
    from tonlake.api.v3.resource.action import Action

Details = dict[str, Any]

_SEGMENT = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_FIELD = re.compile(r"\{([^}]+)\}")
_ACCOUNT = re.compile(r"-?[0-9]{1,10}:[0-9A-F]{64}")
MOST_TEXT_CHARACTERS = 300
"""Comments are strangers' texts; what is longer is cut."""

_UNKNOWN = "an unknown account"


class Part(msgspec.Struct, frozen=True):
    """A piece of a sentence; ``kind`` is text, account (``text`` is raw), value or quote."""

    kind: str
    text: str


class Segment(msgspec.Struct, frozen=True):
    """Words and fields in turn, the words first; optional ones may be left out."""

    pieces: tuple[str, ...]
    optional: bool


class Told(msgspec.Struct, frozen=True):
    """An action in words."""

    parts: list[Part]
    success: bool
    trace_id: str
    utime: int
    type: str


@cache
def load_sentences() -> Mapping[str, tuple[Segment, ...]]:
    """Return the sentence of each type of action, from the packaged table."""
    text = files("tonlake.api.explorer").joinpath("sentences.txt").read_text(encoding="utf-8")
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


def tell_actions(actions: Iterable[Action], names: Names) -> list[Told]:
    """Return actions in words; their answer's book and metadata have been learnt before."""
    return [
        Told(tell(action, names), action.success, action.trace_id, action.end_utime, action.type)
        for action in actions
    ]


def tell(action: Action, names: Names) -> list[Part]:
    """Return the sentence of an action."""
    segments = load_sentences().get(action.type)
    if segments is None:
        return _tell_plainly(action)
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
    if form == "TON":
        return Part("value", names.amount(_number(value)))
    if form.startswith("of "):
        asset = _find(details, form.removeprefix("of "))
        return Part("value", names.amount(_number(value), _text(asset)))
    if form == "symbol":
        return Part("value", names.symbol(_text(value)))
    text = _text(value)
    if text is None:
        return Part("text", _UNKNOWN if not form else "unknown")
    if not form:
        return Part("account" if _ACCOUNT.fullmatch(text) else "text", text)
    return Part("quote" if form == "quoted" else "text", text[:MOST_TEXT_CHARACTERS])


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


def _tell_plainly(action: Action) -> list[Part]:
    """Say of a type without a sentence what it is, and who takes part."""
    parts = [Part("text", action.type.replace("_", " "))]
    named = [
        text
        for text in action.details.values()
        if isinstance(text, str) and _ACCOUNT.fullmatch(text)
    ]
    for at, text in enumerate(dict.fromkeys(named)):
        parts += [Part("text", ", " if at else " between "), Part("account", text)]
    return parts
