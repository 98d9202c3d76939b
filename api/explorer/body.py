"""Decoded bodies as people read them: numbers, addresses and options without their wrapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from tonlake.api.v3.layout.message import Message

MOST_CHARACTERS = 20_000
"""A decoded body above this is cut on a page; the API has all of it."""

MOST_DEPTH = 40
"""What is nested deeper stays as it is."""

_TYPE = "@type"
_NUMBERS = frozenset({"var_uint", "var_int"})
_SOMETHING = "something_from_maybe"
_NOTHING = frozenset({"nothing_from_maybe", "addr_none"})


def write_body(message: Message) -> str:
    """Return a message's decoded body as indented JSON; "" where no layout fits."""
    content = message.message_content
    if content is None or content.decoded is None:
        return ""
    encoded = msgspec.json.encode(unwrap(content.decoded))
    text = msgspec.json.format(encoded, indent=2).decode()
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n… ({len(text):,} characters in all)"


def unwrap(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - bodies hold any JSON
    """Return a value with amounts as their number, addresses raw, and options as what they hold."""
    if depth > MOST_DEPTH:
        return value
    if isinstance(value, list):
        return [unwrap(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return _unwrap_object(value, depth)
    return value


def _unwrap_object(value: dict[str, Any], depth: int) -> object:
    kind = value.get(_TYPE)
    if kind in _NOTHING:
        return None
    if kind in _NUMBERS and "value" in value:
        return value["value"]
    if kind == "addr_std" and "workchain_id" in value and "address" in value:
        return f"{value['workchain_id']}:{value['address']}"
    if kind == _SOMETHING and set(value) == {_TYPE, "value"}:
        return unwrap(value["value"], depth + 1)
    return {name: unwrap(each, depth + 1) for name, each in value.items()}


FILTERS = {"body": write_body}
