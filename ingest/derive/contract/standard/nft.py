"""NFTs (TEP-62): collections and items; items of name roots (TEP-81) with their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.detection import Finding, Question, address_fields
from tonlake.ingest.derive.contract.stack import Mismatch, Results
from tonlake.ingest.derive.contract.standard.content import read_content
from tonlake.ingest.derive.contract.standard.domain import (
    ROOTS,
    TON_SUFFIX,
    join_labels,
    read_records,
    read_text,
)
from tonlake.lake.schema.contract import DNS_RECORDS, NFT_COLLECTIONS, NFT_ITEMS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tonlake.ingest.derive.contract.detection import Detection
    from tonlake.ingest.derive.contract.stack import Address, Cell
    from tonlake.ingest.derive.contract.standard.content import Content

_ALL_CATEGORIES = 0


def detect_collection(me: Address) -> Detection:
    """Ask get_collection_data: next index, content, owner."""
    answer = Results((yield Question(me, "get_collection_data")), 3)
    index, content, owner = answer.integer(), answer.cell(), answer.address()
    fields = {
        "next_item_index": str(index),
        **address_fields("owner", owner),
        "content": read_content(content.tree, content.root),
    }
    return [Finding(NFT_COLLECTIONS.name, fields)]


class ItemDetector:
    """Detects items, and domains on the network with this global id."""

    def __init__(self, global_id: int | None) -> None:
        """Take the network; main and test network have roots that are known."""
        self._roots = None if global_id is None else ROOTS.get(global_id)

    def __call__(self, me: Address) -> Detection:
        """Ask get_nft_data of an item, and its collection for its address and its content."""
        answer = Results((yield Question(me, "get_nft_data")), 5)
        init, index, collection = answer.boolean(), answer.integer(), answer.address()
        owner, own = answer.address(), answer.maybe_cell()
        content: Content | None = None
        if collection is None:
            content = _read_maybe(own)
        else:
            told = yield Question(collection, "get_nft_address_by_index", (index,))
            if Results(told, 1).address() != me:
                raise Mismatch("the collection names another item")
            content = yield from _ask_content(collection, index, own)
        domain = None if collection is None else (yield from self._ask_domain(me, collection))
        if domain is not None:
            content = {**(content or {}), "domain": domain}
        fields = {
            "init": init,
            "item_index": str(index),
            **address_fields("collection", collection),
            **address_fields("owner", owner),
            "content": content,
        }
        found = [Finding(NFT_ITEMS.name, fields)]
        if domain is not None and collection is not None:
            records = yield from _ask_records(me)
            named = {
                "domain": domain,
                **address_fields("collection", collection),
                **address_fields("owner", owner),
                **records,
            }
            found.append(Finding(DNS_RECORDS.name, named))
        return found

    def _ask_domain(self, me: Address, collection: Address) -> Generator[Question, Any, str | None]:
        """Return the domain of an item of a root collection.

        Other networks have no roots that are known: there any item with a domain is one.
        """
        if self._roots is not None and collection not in self._roots:
            return None
        name = yield Question(me, "get_domain", required=False)
        if name is not None:
            return read_text(_take_slice(name)) + TON_SUFFIX
        labels = yield Question(me, "get_full_domain", required=False)
        return None if labels is None else join_labels(_take_slice(labels))


def _take_slice(stack: list[Any]) -> CellSlice:
    value = Results(stack, 1).take()
    if not isinstance(value, CellSlice):
        raise Mismatch("no slice where a name is expected")
    return value


def _make_root_name() -> CellSlice:
    """Return the name of one zero byte: the contract itself."""
    builder = CellBuilder().store_uint(0, 8)
    return builder.tree.slice(builder.end())


def _ask_content(
    collection: Address, index: int, own: Cell | None
) -> Generator[Question, Any, Content | None]:
    if own is None:
        return None
    told = yield Question(collection, "get_nft_content", (index, own), required=False)
    return _read_maybe(own if told is None else Results(told, 1).maybe_cell())


def _read_maybe(cell: Cell | None) -> Content | None:
    return None if cell is None else read_content(cell.tree, cell.root)


def _ask_records(me: Address) -> Generator[Question, Any, dict[str, Any]]:
    told = yield Question(me, "dnsresolve", (_make_root_name(), _ALL_CATEGORIES), required=False)
    if told is None:
        return read_records(None)
    answer = Results(told, 2)
    answer.integer()
    return read_records(answer.maybe_cell())
