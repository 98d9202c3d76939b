"""Accounts that the configuration suspends until a date (parameter 44)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.place import find_configuration_seqno
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call
    from tonlake.api.text.address import Address

SUSPENDED_PARAM = 44
_KEY_BITS = 288
_ACCOUNT_BITS = 256
_WORKCHAIN_BITS = 32


def is_suspended(call: Call, master: Mapping[str, Any], address: Address, utime: int) -> bool:
    """Return whether an account may not be activated at a time.

    TL-B: suspended_address_list#00 addresses:(HashmapE 288 Unit) suspended_until:uint32.
    Where the lake lacks the key block whose configuration holds, no list is known.
    """
    # Most ask about the newest block: what holds there is read once for all of them.
    newest = master["seqno"] == call.reader.snapshot.last_mc_seqno
    find = call.reader.lasting_rows if newest else call.reader.rows
    rows = find(
        "v2/config_params", mc_seqno=find_configuration_seqno(master), param=SUSPENDED_PARAM
    )
    if not rows:
        return False
    tree = parse_boc(rows[0]["boc"])
    start = tree.slice(tree.roots[0])
    start.skip(8)
    root = start.load_maybe_ref()
    if root is None or utime >= start.load_uint(32):
        return False
    requested = (address.workchain & (1 << _WORKCHAIN_BITS) - 1) << _ACCOUNT_BITS
    requested |= int.from_bytes(address.account, "big")
    return any(key == requested for key, _value in iter_hashmap(tree, root, _KEY_BITS))
