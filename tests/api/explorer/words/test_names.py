"""Displayed names of accounts and tokens."""

from tonlake.api.explorer.words.names import Names, list_certain, load_labels
from tonlake.api.v3.resource.answer import AddressBookRow, AddressMetadata, TokenInfo
from tonlake.lake.settings import LakeSettings

ANN, BOB, GOLD = (f"0:{digit * 64}" for digit in "ABC")
ELECTOR = f"-1:{'3' * 64}"


def test_tokens_are_called_by_name_domain_or_address() -> None:
    names = Names(None)  # type: ignore[arg-type] # nothing has to be looked up
    tokens = {
        ANN: TokenInfo("jetton_masters", name="Annas", symbol="AN"),
        BOB: TokenInfo("nft_items", extra={"domain": "bob.ton"}),
    }
    metadata = {
        raw: AddressMetadata(is_indexed=True, token_info=[info]) for raw, info in tokens.items()
    }
    book = {raw: AddressBookRow(f"EQ-of-{raw[-1]}", None, None) for raw in (ANN, BOB, GOLD)}
    names.learn(book, metadata)
    assert [names.label(raw) for raw in (ANN, BOB, GOLD)] == ["Annas", "bob.ton", "EQ-of-C"]
    assert [names.symbol(raw) for raw in (None, ANN, GOLD)] == ["TON", "AN", "EQ-of-C"]
    assert [names.unit(raw) for raw in (None, ANN, GOLD)] == ["TON", "AN", "units of EQ-of-C"]


def test_code_that_resembles_several_wallets_is_none_of_them() -> None:
    by_seqno = ["wallet_v1r2", "wallet_v2r1", "wallet_v3r1", "wallet_v5_beta"]
    assert list_certain(by_seqno) == []
    assert list_certain(["nft_item", *by_seqno, "wallet_vesting"]) == ["nft_item", "wallet_vesting"]
    for known in (["wallet_v3r1"], ["dns", "nft_item"], []):
        assert list_certain(known) == known


def test_a_label_comes_before_a_domain() -> None:
    labels = load_labels(LakeSettings())
    names = Names(None, labels)  # type: ignore[arg-type] # nothing has to be looked up
    names.learn({ELECTOR: AddressBookRow("Ef8", "a-domain.ton", None)})
    assert names.label(ELECTOR) == "Elector"
