"""Rules of domains on built traces."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import dns
from tonlake.ingest.derive.action.protocol.nft import DNS_COLLECTION, FILL_UP

OWNER, ITEM, WALLET = account("owner"), account("domain"), account("wallet")
ADNL = "ab" * 32


def change(key: int, record: int | None = None, *, aborted: bool = False) -> Scene:
    """Change a record as the owner to one of a constructor."""
    scene = Scene()
    scene.know(ITEM, "NftItem", index=1, collection_address=DNS_COLLECTION, owner_address=OWNER)
    body = Cell(dns.CHANGE_RECORD).uint(1, 64).uint(key, 256)
    if record is not None:
        value = body.child().uint(record, 16)
        if record in {0x9FD3, 0xBA93}:
            value.address(WALLET)
        elif record == 0x1EDA:
            value.uint(1, 8).uint(2, 8).text("hi")
        else:
            value.uint(int(ADNL, 16), 256)
        body.ref(value.uint(0, 8))
    step = scene.external(OWNER).send(ITEM, body)
    if aborted:
        step.abort().send(OWNER, opcode=0xFFFFFFFF)
    return scene


@pytest.mark.parametrize(
    ("record", "schema", "value", "flags"),
    [
        (0x9FD3, "DNSSmcAddress", WALLET, 0),
        (0xAD01, "DNSAdnlAddress", ADNL, 0),
        (0xBA93, "DNSNextResolver", WALLET, None),
        (0x7473, "DNSStorageAddress", ADNL, None),
        (0x1EDA, "DNSText", "hi", None),
        (0x1234, "Unknown", None, None),
    ],
)
def test_change(record: int, schema: str, value: str | None, flags: int | None) -> None:
    columns = change(0xABC, record).find("change_dns").columns
    assert (columns["source"], columns["destination"]) == (OWNER, ITEM)
    assert columns["asset"] == DNS_COLLECTION
    assert columns["change_dns_record_data"] == {
        "key": f"{0xABC:064x}",
        "value_schema": schema,
        "value": value,
        "flags": flags,
    }


def test_change_that_was_refused() -> None:
    scene = change(1, 0x9FD3, aborted=True)
    assert not scene.find("change_dns").success
    assert len(scene.classify()) == 1


def test_record_is_deleted() -> None:
    columns = change(1).find("delete_dns").columns
    assert columns["change_dns_record_data"] == {"key": f"{1:064x}"}


def test_domain_is_renewed() -> None:
    assert change(0).find("renew_dns").columns["destination"] == ITEM


def test_release(scene: Scene) -> None:
    scene.know(ITEM, "NftItem", index=1, collection_address=DNS_COLLECTION)
    scene.external(OWNER).send(ITEM, Cell(dns.RELEASE).uint(4, 64), value=77)
    columns = scene.find("dns_release").columns
    assert (columns["destination"], columns["value"]) == (ITEM, 77)
    assert columns["nft_transfer_data"] == {"query_id": 4, "nft_item_index": 1}


@pytest.mark.parametrize("collection", [DNS_COLLECTION, account("another collection")])
def test_end_of_an_auction(scene: Scene, collection: str) -> None:
    scene.know(ITEM, "NftItem", index=1, collection_address=collection, owner_address=OWNER)
    called = scene.external(OWNER).send(ITEM, Cell(0x2FCB26A2).uint(1, 64))
    called.send(collection, Cell(FILL_UP).uint(1, 64), value=500)
    found = [each for each in scene.classify() if each.type == "dns_purchase"]
    assert bool(found) is (collection == DNS_COLLECTION)
    for action in found:
        assert action.columns["destination"] == OWNER
        assert action.columns["nft_transfer_data"]["price"] == 500
