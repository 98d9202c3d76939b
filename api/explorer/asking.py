"""What pages share in asking: parts of a page that the lake may not know, and their paging."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from tonlake.api.errors import AnswerNotFound, LakeUnavailable, RequestInvalid
from tonlake.api.request.params import ConversionError, parse_any_address, parse_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.address import Address

MOST_OFFSET = (1 << 31) - 1

T = TypeVar("T")


def ask_or_say(ask: Callable[[], T]) -> T | str:
    """Return an answer; or, where the lake does not know, the words that say why."""
    try:
        return ask()
    except (AnswerNotFound, LakeUnavailable) as error:
        return str(error)


def link(path: str, **parameters: object) -> str:
    """Return a path with those parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def read_offset(question: Question) -> int:
    """Return how many rows of a list to pass over; what is no number is 0."""
    text = question.argument("offset")
    return min(int(text), MOST_OFFSET) if text.isascii() and text.isdecimal() else 0


def read_hash(question: Question) -> bytes:
    """Return the hash in the path of a page.

    Raises:
        RequestInvalid: it is none.
    """
    try:
        return parse_hash(question.parts["hash"])
    except ConversionError as error:
        raise RequestInvalid("a hash must be 64 hex digits or 44 base64 characters") from error


def read_address(question: Question) -> Address:
    """Return the address in the path of a page, in any form.

    Raises:
        RequestInvalid: it is none.
    """
    try:
        return parse_any_address(question.parts["address"])
    except ConversionError as error:
        raise RequestInvalid("invalid address in the path") from error
