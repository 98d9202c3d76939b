"""The network that the rows of a lake come from."""

from __future__ import annotations

import msgspec

from tonlake.lake.errors import NetworkMismatch


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The network of some rows; hashes are hex, and None if its zero state is unknown."""

    global_id: int
    zero_state_root_hash: str | None = None
    zero_state_file_hash: str | None = None


def join_networks(known: Network | None, new: Network | None) -> Network | None:
    """Return the union of two descriptions of a network.

    Raises:
        NetworkMismatch: they describe different networks.
    """
    if known is None or new is None:
        return known or new
    joined = {}
    for name in Network.__struct_fields__:
        old_value, new_value = getattr(known, name), getattr(new, name)
        if None not in (old_value, new_value) and old_value != new_value:
            raise NetworkMismatch(
                f"the lake has {name} {old_value} and the rows have {new_value}: "
                "rows of another network need a separate lake"
            )
        joined[name] = new_value if old_value is None else old_value
    return Network(**joined)
