"""Messages as bags: read, built, and taken out of transactions.

TL-B: message$_ info:CommonMsgInfo init:(Maybe (Either StateInit ^StateInit)) body:(Either X ^X).
"""

from __future__ import annotations

from typing import Any

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.schema import MESSAGES

_OUT_KEY_BITS = 15
_EXT_IN = 0b10
_ADDR_NONE, _ADDR_STD = 0b00, 0b100
_OWN_COLUMNS = MESSAGES.names[MESSAGES.names.index("msg_hash") :]


def read_message(boc: bytes) -> dict[str, Any]:
    """Return the columns of ``messages`` that a message itself says, from ``msg_hash`` on.

    Raises:
        BocError: ``boc`` is no bag of cells.
        DecodeError: it holds no message.
    """
    tree = parse_boc(boc)
    try:
        columns = MessageDecoder(tree, None).decode(tree.roots[0])
    except (BocError, DecodeError) as error:
        raise DecodeError(f"the cell is no message: {error}") from error
    except (ValueError, IndexError) as error:
        raise DecodeError("the cell is no message: it ends too early") from error
    return dict(zip(_OWN_COLUMNS, columns, strict=True))


def read_destination(boc: bytes) -> tuple[int, bytes]:
    """Return workchain and account that a message goes to.

    Raises:
        BocError: ``boc`` is no bag of cells.
        DecodeError: it holds no message, or one to no standard address.
    """
    message = read_message(boc)
    if message["destination_kind"] != "std":
        raise DecodeError("the message goes to no standard address (addr_std)")
    return message["destination_workchain"], message["destination"]


def list_messages(transaction: bytes) -> tuple[bytes | None, list[bytes]]:
    """Return the in message and the out messages of a transaction, as bags of their own.

    Raises:
        BocError: the bag is no transaction.
    """
    tree = parse_boc(transaction)
    start = tree.slice(tree.refs(tree.roots[0])[0])
    received = start.load_maybe_ref()
    root = start.load_maybe_ref()
    leaves = () if root is None else iter_hashmap(tree, root, _OUT_KEY_BITS)
    sent = [leaf.load_ref() for _index, leaf in leaves]
    return (
        None if received is None else serialize_boc(tree, [received]),
        [serialize_boc(tree, [cell]) for cell in sent],
    )


def build_external_message(
    workchain: int, account: bytes, body: bytes, state_init: tuple[bytes | None, bytes | None]
) -> bytes:
    """Return an external message as wallets send it: no source, no import fee, body by reference.

    Args:
        workchain: Workchain of the destination.
        account: Its account id.
        body: The body's cell as bag.
        state_init: Code and data to bring along, as bags; (None, None) brings no StateInit.

    Raises:
        BocError: a bag is none, or the workchain does not fit 8 bits.
    """
    tree = CellTree()
    builder = CellBuilder(tree).store_uint(_EXT_IN, 2).store_uint(_ADDR_NONE, 2)
    builder.store_uint(_ADDR_STD, 3).store_int(workchain, 8).store_bytes(account).store_coins(0)
    code, data = (None if boc is None else graft(tree, parse_boc(boc)) for boc in state_init)
    if code is None and data is None:
        builder.store_bit(0)
    else:
        init = CellBuilder(tree).store_uint(0, 2)  # no fixed_prefix_length, not special
        init.store_maybe_ref(code).store_maybe_ref(data).store_maybe_ref(None)
        builder.store_uint(0b11, 2).store_ref(init.end())
    builder.store_bit(1).store_ref(graft(tree, parse_boc(body)))
    return serialize_boc(tree, [builder.end()])
