"""A scene with some of everything: jettons, NFTs on sale and not, names, a multisig, vesting."""

import json

from pytoniq_core import HashMap, begin_cell

from tests.api.v3.scene import Scene, make_raw
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc

GET_WALLET_DATA, GET_JETTON_DATA, GET_COLLECTION_DATA, GET_NFT_DATA = 97026, 106029, 102491, 102351
GOLD = '{"name":"Gold","symbol":"AU","decimals":"3"}'
TEXT_HI = bytes.fromhex("b5ee9c7201010101000800000c000000006869")
"""A text comment "hi" as a bag of cells."""


def _build_order() -> bytes:
    """Return an order of two transfers to ``payee``, as the bag that the contract scan stores."""
    actions = HashMap(8, value_serializer=lambda cell, target: target.store_ref(cell))
    for number in range(2):
        body = begin_cell().store_uint(0, 32).store_snake_string(f"part {number}").end_cell()
        message = (
            begin_cell()
            .store_bits("011000")
            .store_address(make_raw("payee"))
            .store_coins(5)
            .store_bits("0" * 106)
            .store_bit(1)
            .store_ref(body)
        )
        sending = begin_cell().store_uint(0xF1381E5B, 32).store_uint(3, 8)
        actions.set_int_key(number, sending.store_ref(message.end_cell()).end_cell())
    root = actions.serialize()
    assert root is not None
    tree = parse_boc(root.to_boc())
    return serialize_boc(tree, tree.roots, crc32c=True)


ORDER = _build_order()

NEVER_INDEXED = 2**64 - 1
LAST = 6


def build_market() -> Scene:
    """Return the scene; its blocks are 1..6."""
    scene = Scene(LAST)
    for code, methods, names in (
        ("wallet code", [GET_WALLET_DATA], ["jetton_wallet"]),
        ("master code", [GET_JETTON_DATA], ["jetton_master"]),
        ("collection code", [GET_COLLECTION_DATA], ["nft_collection"]),
        ("item code", [GET_NFT_DATA], ["nft_item"]),
        ("plain code", [1, 2], None),
        ("code without methods", None, None),
    ):
        scene.put("interfaces", code_hash=code, mc_seqno=1, methods=methods, names=names)
    scene.put(
        "account_states",
        account="hermit",
        mc_seqno=1,
        account_status="active",
        code_hash="code without methods",
        hash="hermit 1",
    )
    for person in ("ann", "bob"):
        scene.put(
            "account_states",
            account=person,
            mc_seqno=1,
            account_status="active",
            code_hash="plain code",
            balance=5,
            hash=person,
        )
    _put_jettons(scene)
    _put_nfts(scene)
    _put_names(scene)
    _put_multisigs(scene)
    _put_vesting(scene)
    return scene


def _put_jettons(scene: Scene) -> None:
    for mc_seqno, name, content, supply, admin in (
        (1, "gold", GOLD, 10**30, "boss"),
        (2, "silver", '{"uri":"https://s.example"}', 5, "boss"),
        (3, "dross", None, 0, None),
        (4, "gold", GOLD, 7, None),
    ):
        scene.put_state(
            "jetton_masters",
            name,
            mc_seqno,
            code="master code",
            total_supply=supply,
            mintable=admin is not None,
            content=content,
            wallet_code_hash="wallet code",
            **({"admin": admin} if admin else {}),
        )
    for mc_seqno, owner, jetton, balance in (
        (1, "ann", "gold", 50),
        (2, "ann", "silver", 70),
        (3, "bob", "gold", 60),
        (4, "ann", "gold", 0),
    ):
        scene.put_state(
            "jetton_wallets",
            f"{owner} {jetton}",
            mc_seqno,
            code="wallet code",
            balance=balance,
            owner=owner,
            jetton=jetton,
        )
    for lt, source, target, aborted in (
        (210, "ann", "bob", False),
        (310, "bob", "ann", False),
        (410, "ann", "bob", True),
    ):
        scene.put(
            "jetton_transfers",
            account=f"{source} gold",
            lt=lt,
            mc_seqno=lt // 100,
            now=1000 + lt // 100,
            tx_hash=f"transfer {lt}",
            aborted=aborted,
            query_id=NEVER_INDEXED,
            jetton="gold",
            source=source,
            destination=target,
            amount=10**20,
            forward_ton_amount=1,
            forward_payload=TEXT_HI,
        )
    scene.put(
        "transaction_traces",
        account="ann gold",
        lt=210,
        mc_seqno=2,
        hash="transfer 210",
        trace_id="trace 210",
    )
    for lt, aborted in ((220, False), (420, True)):
        scene.put(
            "jetton_burns",
            account="ann gold",
            lt=lt,
            mc_seqno=lt // 100,
            now=1000 + lt // 100,
            tx_hash=f"burn {lt}",
            aborted=aborted,
            query_id=lt,
            jetton="gold",
            owner="ann",
            amount=3,
            custom_payload=TEXT_HI,
        )


def _put_bird(scene: Scene, item: str, owner: str, mc_seqno: int) -> None:
    places = {"owner": owner, "item_index": item.split()[1], "collection": "birds"}
    values = places | {"code": "item code", "init": True, "content": '{"name":"A bird"}'}
    scene.put_state("nft_items", item, mc_seqno, **values)


def _put_nfts(scene: Scene) -> None:
    scene.put_state(
        "nft_collections",
        "birds",
        1,
        code="collection code",
        next_item_index="11",
        owner="boss",
        content='{"name":"Birds"}',
    )
    for item in ("bird 9", "bird 10"):
        _put_bird(scene, item, "ann", 2)
    scene.put_state(
        "nft_items",
        "lone",
        3,
        code="item code",
        init=True,
        item_index="0",
        owner="bob",
        content='{"uri":"https://n.example","name":"Lone"}',
    )
    for item, contract, kind in (
        ("bird 9", "shop", "getgems_sale"),
        ("bird 10", "hall", "getgems_auction"),
    ):
        scene.put_state(
            "nft_sales",
            contract,
            4,
            code="plain code",
            kind=kind,
            nft=item,
            nft_owner="ann",
            marketplace="boss",
            created_at=77,
            details=json.dumps({"full_price": "5", "royalty_address": make_raw("artist")}),
        )
        _put_bird(scene, item, contract, 4)
    _put_bird(scene, "bird 9", "bob", 5)
    for lt, item, source, target in (
        (405, "bird 9", "ann", "shop"),
        (505, "bird 9", "shop", "bob"),
        (306, "lone", "ann", "bob"),
    ):
        where = {"collection": "birds"} if item != "lone" else {}
        scene.put(
            "nft_transfers",
            account=item,
            lt=lt,
            mc_seqno=lt // 100,
            now=1000 + lt // 100,
            tx_hash=f"nft {lt}",
            aborted=lt == 505,
            query_id=lt,
            item_index="9",
            old_owner=source,
            new_owner=target,
            forward_amount=2,
            **where,
        )


def _put_names(scene: Scene) -> None:
    for mc_seqno, name, owner, wallet in (
        (1, "longer.ton", "ann", "ann"),
        (2, "ann.ton", "bob", "ann"),
        (3, "a.ton", "ann", None),
        (4, "ann.ton", "ann", "ann"),
        (5, "longest.ton", "ann", "bob"),
    ):
        scene.put_state(
            "dns_records",
            name,
            mc_seqno,
            code="item code",
            domain=name,
            collection="root",
            owner=owner,
            site_adnl="site",
            **({"wallet": wallet} if wallet else {}),
        )


def _put_multisigs(scene: Scene) -> None:
    signers = [make_raw("ann"), make_raw("bob")]
    for mc_seqno, name, proposers in ((1, "safe", []), (2, "vault", [make_raw("boss")])):
        scene.put_state(
            "multisig_wallets",
            name,
            mc_seqno,
            next_order_seqno="2",
            threshold=2,
            signers=signers[:mc_seqno],
            proposers=proposers,
        )
    for mc_seqno, seqno, order in ((2, 0, TEXT_HI), (3, 1, None), (3, 2, ORDER)):
        known = order is not None
        scene.put_state(
            "multisig_orders",
            f"order {seqno}",
            mc_seqno,
            multisig="safe" if seqno < 2 else "nest",
            order_seqno=str(seqno),
            order_boc=order,
            threshold=2 if known else None,
            sent_for_execution=False if known else None,
            signers=signers if known else None,
            approvals_mask="1" if known else None,
            approvals_num=1 if known else None,
            expiration_date=2000 if known else None,
        )


def _put_vesting(scene: Scene) -> None:
    for mc_seqno, name, owner in ((1, "pension", "ann"), (2, "trust", "bob")):
        scene.put_state(
            "vesting_contracts",
            name,
            mc_seqno,
            start_time=1,
            total_duration=20,
            unlock_period=5,
            cliff_duration=10,
            total_amount=10**12,
            sender="boss",
            owner=owner,
            whitelist=[make_raw("shop")],
        )
