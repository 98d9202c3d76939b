"""Turns decoded message bodies into trees of names and values."""

import re
from typing import Any

import msgspec

from tonlake.api.explorer.words.form import write_count, write_duration, write_moment, write_ton
from tonlake.api.v3.layout.transaction import Message
from tonlake.ingest.derive.body.codec import NOTHING, SOMETHING
from tonlake.ingest.derive.body.composite import EDGE, EMPTY, LEAF, ROOT

MAX_VALUES = 2000
"""Maximum values of a body on a page; the API returns all."""

MAX_CHARACTERS = 5000
"""Maximum length of one value."""

MAX_DEPTH = 40
"""Values nested deeper are shown as their plain text."""

_TYPE = "@type"
_NUMBERS = frozenset({"var_uint", "var_int"})
_NOTHING = frozenset({NOTHING, "addr_none", EMPTY})
_COINS = frozenset({"nanograms", "nanocoins"})
_DICTIONARIES = frozenset({ROOT, EDGE})
MAX_NUMBER_BITS = 64
"""Longer dictionary keys are shown as hex digits."""

_TON = ("ton_amount", "fwd_fee", "ihr_fee")
"""Suffixes of field names with amounts in nanoton that the layout does not mark as coins."""

_JETTONS = re.compile(r"jetton|supply|(^|_)lp_|^tokens$")
"""Names of jetton amounts, which some layouts declare as coins."""

_TIMES = frozenset(
    {
        *("valid_until", "expired_at", "expiration_date", "created_at", "deadline"),
        *("enabled_since", "utime_since", "utime_until"),
    }
)
_SPANS = (
    *("elected_for", "start_before", "end_before", "held_for", "store_sec", "lifetime"),
    *("merge_delay", "merge_interval"),
)
"""Suffixes of configuration field names in seconds."""

_DIGEST = re.compile(r"[0-9A-F]{64}")
_DIGESTS = ("hash", "key")
"""Suffixes of names of 256-bit values shown as hex digits."""

_FACTOR, FACTOR_UNIT = "_factor", 1 << 16
"""Suffix of names of fixed-point numbers, and the value of 1.0."""

_SIGNED = frozenset({"mandatory_params", "critical_params", "workchains"})
"""Dictionaries of the configuration with signed 32-bit keys."""

_UNIX_SECONDS = range(10**9, 1 << 32)
"""Numbers shown as times if the name is in ``_TIMES``; others, such as 0, mean no limit."""

_ACCOUNT = re.compile(r"-?[0-9]{1,10}:[0-9A-Fa-f]{64}")


class Node(msgspec.Struct, frozen=True):
    """A named value: text, account (``text`` is its raw address) or ``children``."""

    name: str
    text: str = ""
    is_account: bool = False
    children: tuple["Node", ...] = ()


def list_body(message: Message) -> tuple[Node, ...]:
    """Return the fields of a message's decoded body; () if it has none."""
    content = message.message_content
    return () if content is None or content.decoded is None else list_values(content.decoded)


def list_values(decoded: Any) -> tuple[Node, ...]:  # noqa: ANN401 - bodies hold any JSON
    """Return the fields of a decoded object, or the items of a list, as nodes."""
    left = [MAX_VALUES]
    return _list_children(unwrap(decoded), left)


def _list_children(value: Any, left: list[int]) -> tuple[Node, ...]:  # noqa: ANN401 - any JSON
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[Node] = []
    for name, each in pairs:
        if name == "type" and value.get(_TYPE) == each:
            continue  # same as "@type"
        left[0] -= 1
        if left[0] < 0:
            return (*found, Node("…", "more values are not shown"))
        found.append(_make_node("type" if name == _TYPE else str(name), each, left))
    return tuple(found)


def _make_node(name: str, value: Any, left: list[int]) -> Node:  # noqa: ANN401 - any JSON
    if isinstance(value, dict) and value and not any(each != {} for each in value.values()):
        return Node(name, ", ".join(value))  # a set
    if isinstance(value, dict | list):
        return Node(name, children=_list_children(value, left)) if value else Node(name, "empty")
    if value is None:
        return Node(name, "none")
    if isinstance(value, bool):
        return Node(name, "yes" if value else "no")
    text = _write_value(name, str(value))
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters in all)"
    return Node(name, text, bool(_ACCOUNT.fullmatch(text)))


def _write_value(name: str, text: str) -> str:
    """Format a value with the unit that its name implies."""
    if not (text.isascii() and text.isdecimal()):
        return text.lower() if name.endswith(_DIGESTS) and _DIGEST.fullmatch(text) else text
    if name.endswith(_TON) and not _JETTONS.search(name):
        return write_ton(text)
    if name in _TIMES and int(text) in _UNIX_SECONDS:
        return f"{text} ({write_moment(text)})"
    if name.endswith(_SPANS):
        brief = write_duration(int(text))
        return brief if brief.endswith(" s") else f"{write_count(text)} s ({brief})"
    if name.endswith(_FACTOR):
        return f"{text} ({int(text) / FACTOR_UNIT:g} times)"
    return text


def unwrap(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - bodies hold any JSON
    """Simplify a decoded value: amounts to numbers, addresses to raw form, Maybe to its content."""
    if depth > MAX_DEPTH:
        return str(value)
    if isinstance(value, list):
        return [unwrap(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TYPE)
    if kind in _DICTIONARIES:
        entries = list_entries(value["root"] if kind == ROOT else value)
        return {name: unwrap(each, depth + 1) for name, each in entries}
    return None if kind in _NOTHING else _unwrap_plain(value, kind, depth)


def _unwrap_plain(value: dict[str, Any], kind: object, depth: int) -> object:
    """Return an amount, an address or the content of a Maybe; else the object, unwrapped."""
    if kind in _NUMBERS and "value" in value:
        return value["value"]
    if kind in _COINS and set(value) == {_TYPE, "amount"}:
        return write_ton(str(unwrap(value["amount"])))  # a number, however deep
    if kind == "addr_std" and "workchain_id" in value and "address" in value:
        return f"{value['workchain_id']}:{value['address']}"
    if kind == SOMETHING and set(value) == {_TYPE, "value"}:
        return unwrap(value["value"], depth + 1)
    found = {}
    for name, each in value.items():
        is_coins = isinstance(each, dict) and each.get(_TYPE) in _COINS
        plain = each.get("amount", each) if is_coins and _JETTONS.search(name) else each
        found[name] = unwrap(plain, depth + 1)
    return found | {name: _sign_keys(found[name]) for name in _SIGNED & found.keys()}


def _sign_keys(entries: Any) -> Any:  # noqa: ANN401 - any JSON
    """Convert 32-bit unsigned keys to signed numbers; return anything else unchanged."""
    if not isinstance(entries, dict) or not all(key.isdecimal() for key in entries):
        return entries
    numbers = [int(key) for key in entries]
    signed = [number - (1 << 32) if number >> 31 else number for number in numbers]
    return {str(key): each for key, each in zip(signed, entries.values(), strict=True)}


def list_entries(edge: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return keys and values of a dictionary decoded as a tree of edges, in key order."""
    found: list[tuple[str, Any]] = []
    todo = [("", edge)]
    while todo:
        prefix, at = todo.pop()
        key = prefix + _read_label(at["label"])
        node = at["node"]
        if node[_TYPE] == LEAF:
            name = str(int(key, 2)) if key else ""
            if len(key) > MAX_NUMBER_BITS:
                name = f"{int(key, 2):0{len(key) // 4}x}"
            found.append((name, node["value"]))
        else:
            todo += [(f"{key}1", node["right"]), (f"{key}0", node["left"])]
    return found


def _read_label(label: dict[str, str]) -> str:
    """Return the bits of a label (HmLabel); digits before "_" end with a completion tag."""
    if "v" in label:
        return label["v"] * int(label["n"])
    digits = label["s"].removesuffix("_")
    length = int(label["len"] if "len" in label else label["n"])
    return f"{int(digits, 16):0{4 * len(digits)}b}"[:length] if digits else ""
