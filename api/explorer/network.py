"""Renders the configuration, the key blocks that changed it, validators and elections.

Parameters and the data of the elector and of staking pools are decoded by ``config.tlb``.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from tonlake.api.chain.block import find_configuration_seqno, find_master
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.run import read_params
from tonlake.api.errors import LiteServerError, NotCovered
from tonlake.api.explorer.frame import PageRequest, Shown
from tonlake.api.explorer.words.body import Node, list_values, unwrap
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.codec import Object, Work
from tonlake.ingest.derive.body.grammar import parse_scheme
from tonlake.ingest.derive.body.scheme import Scheme
from tonlake.ingest.errors import BocError, BodyError, BodyLimit
from tonlake.lake.account import MASTERCHAIN
from tonlake.queries.reader import Reader

CURRENT, NEXT, PREVIOUS = 34, 36, 32
"""Parameters with the current, next and previous validator set."""

ELECTOR, TIMES, COUNTS, STAKES = 1, 15, 16, 17

_TITLE = re.compile(r"^// Param(Minus)?(\d+): (.+)$", re.MULTILINE)


def _read_scheme() -> str:
    return files("tonlake.api.explorer").joinpath("config.tlb").read_text(encoding="utf-8")


NAMES = {
    int(number) * (-1 if sign else 1): title
    for sign, number, title in _TITLE.findall(_read_scheme())
}
"""Titles of configuration parameters; others have none.

The configuration contract (``config-code.fc``) acts on -999 and -1000 besides storing them.
"""


def decode_param(number: int, boc: bytes) -> "Object | None":
    """Decode the bag of a configuration parameter; None if its format is unknown."""
    sign = "Minus" if number < 0 else ""
    return decode_data(f"Param{sign}{abs(number)}", boc)


def decode_data(name: str, boc: bytes) -> "Object | None":
    """Decode a bag of cells as the type ``name`` of ``config.tlb``; None if it does not fit."""
    try:
        tree = parse_boc(boc)
        source = tree.slice(tree.roots[0])
        text = _load_scheme().union(name).decode(source, Work(tree, {}))
    except (BocError, BodyError, BodyLimit):
        return None
    if source.bits_left or source.refs_left:
        return None
    return msgspec.json.decode(text, type=dict[str, Any])


@cache
def _load_scheme() -> Scheme:
    return Scheme(parse_scheme(_read_scheme()))


Values = dict[str, Any]
Params = dict[int, bytes]

MAX_CHANGES = 20
MAX_ADDRESS = 4
"""Parameters 0 to 4 are accounts of the masterchain."""

SETS = {CURRENT: "Current validators", NEXT: "Next validators", PREVIOUS: "Previous validators"}


class Change(msgspec.Struct, frozen=True):
    """A value that a key block changed; ``before`` or ``after`` is "" if it did not exist."""

    number: int
    name: str
    path: str
    before: str
    after: str


def show_config(question: PageRequest) -> Shown:
    """Show the configuration and the key blocks that changed it."""
    key_seqno, params = _read_configuration(question)
    rows = question.call.reader.rows("explorer/config_changes", limit=MAX_CHANGES)
    values = {
        "key_seqno": key_seqno,
        "params": [_show_param(number, params[number]) for number in sorted(params)],
        "changes": rows,
    }
    return Shown("config.html", "Configuration", values)


def _read_configuration(question: PageRequest) -> tuple[int, Params]:
    """Return the seqno of the key block and its parameters; NotCovered if it is not there."""
    try:
        master = find_master(question.call)
        return find_configuration_seqno(master), read_params(question.call, master)
    except LiteServerError as error:
        raise NotCovered(f"the configuration is not in the lake: {error}") from error


def _show_param(number: int, boc: bytes) -> Values:
    """Return a parameter; ``values`` is empty if its format is unknown, ``size`` is in bytes."""
    decoded = decode_param(number, boc)
    values = () if decoded is None else list_values(decoded)
    if 0 <= number <= MAX_ADDRESS:
        values = tuple(
            Node(node.name, f"{MASTERCHAIN}:{node.text}", is_account=True) for node in values
        )
    return {"number": number, "name": NAMES.get(number, ""), "values": values, "size": len(boc)}


def compare_configuration(reader: Reader, seqno: int, earlier: int) -> list[Change] | None:
    """Return what key block ``seqno`` changed since the one before; None without either."""
    lists = (reader.rows("v2/config_params", mc_seqno=at) for at in (earlier, seqno))
    before, after = ({row["param"]: row["boc"] for row in rows} for rows in lists)
    return compare_params(before, after) if before and after else None


def compare_params(before: Params, after: Params) -> list[Change]:
    """Return the values that differ, ordered by parameter number."""
    found = []
    for number in sorted(before.keys() | after.keys()):
        if before.get(number) != after.get(number):
            old, new = (_flatten(number, params.get(number)) for params in (before, after))
            found += [
                Change(number, NAMES.get(number, ""), path, old.get(path, ""), new.get(path, ""))
                for path in dict.fromkeys((*old, *new))
                if old.get(path) != new.get(path)
            ]
    return found


def _flatten(number: int, boc: bytes | None) -> dict[str, str]:
    """Return the values of a parameter by path; an unknown format gives one value, its BOC."""
    if boc is None:
        return {}
    decoded = decode_param(number, boc)
    if decoded is None:
        return {"": f"a cell of unknown form: {boc.hex()}"}
    found: dict[str, str] = {}
    todo = [("", list_values(decoded))]
    while todo:
        prefix, nodes = todo.pop()
        for node in nodes:
            path = f"{prefix}{node.name}"
            if node.children:
                todo.append((f"{path}.", node.children))
            else:
                found[path] = node.text
    return found


def show_validators(question: PageRequest) -> Shown:
    """Show the validator sets, the elections and the number of blocks each validator created."""
    key_seqno, params = _read_configuration(question)
    elector, elections = _read_elections(question.call.reader, params)
    sets = {
        number: _show_set(question.call.reader, number, params[number], elections)
        for number in SETS
        if number in params
    }
    rules = [number for number in (TIMES, COUNTS, STAKES) if number in params]
    values = {
        "key_seqno": key_seqno,
        "sets": [found for found in sets.values() if found is not None],
        "unread": [SETS[number] for number, found in sets.items() if found is None],
        "elector": elector,
        "elections": elections,
        "rules": [_show_param(number, params[number]) for number in rules],
    }
    return Shown("validators.html", "Validators", values)


def _read_elections(reader: Reader, params: Params) -> tuple[str | None, Values | None]:
    """Return the raw address of the elector and its decoded data; None if not in the lake."""
    decoded = decode_param(ELECTOR, params.get(ELECTOR, b""))
    if decoded is None:
        return None, None
    account = bytes.fromhex(str(decoded["elector_addr"]))
    raw = f"{MASTERCHAIN}:{account.hex().upper()}"
    row = reader.one("v3/accounts", workchains=[MASTERCHAIN], accounts=[account])
    data_hash = None if row is None else row["data_hash"]
    data = read_cell_trees(reader, [data_hash]).get(data_hash) if data_hash else None
    found = None if data is None else decode_data("ElectorData", data)
    return raw, None if found is None else unwrap(found)


def _show_set(reader: Reader, number: int, boc: bytes, elections: Values | None) -> Values | None:
    """Return a validator set and its members; None, also for a stake, means unknown."""
    decoded = decode_param(number, boc)
    if decoded is None:
        return None
    found = unwrap(decoded)["validators"]
    since, until = int(found["utime_since"]), int(found["utime_until"])
    past = ((elections or {}).get("past_elections") or {}).get(str(since)) or {}
    stakes: Mapping[str, Values] = past.get("frozen") or {}
    made = {}
    if number != NEXT:
        rows = reader.rows("explorer/block_creators", since=since, until=until)
        made = {row["created_by"].hex(): row["blocks"] for row in rows}
    listed = found["list"] or {}
    total = sum(int(one["weight"]) for one in listed.values()) or 1
    validators = []
    for index, one in listed.items():
        key = one["public_key"]["pubkey"].lower()
        stake = stakes.get(key) or {}
        wallet = stake.get("src_addr")
        validators.append(
            {
                "index": int(index),
                "key": key,
                "share": int(one["weight"]) / total,
                "stake": stake.get("stake"),
                "wallet": f"{MASTERCHAIN}:{wallet}" if wallet else None,
                "blocks": made.get(key, 0) if number != NEXT else None,
            }
        )
    period = {"since": since, "until": until, "main": int(found["main"])}
    return {"title": SETS[number], **period, "validators": validators}
