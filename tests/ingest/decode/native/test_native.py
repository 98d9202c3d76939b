"""The native decoder equals the Python decoder, row for row and byte for byte."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonlake.ingest.decode.native as native_package
from tests.commands import run
from tests.damage import throw
from tests.ingest.decode.block.samples import DESCRIPTIONS, Columns, Fields
from tests.ingest.decode.block.test_fuzz import spoil_cells
from tests.ingest.decode.block.test_message import messages
from tests.ingest.decode.block.test_state import draw_account
from tests.ingest.decode.block.test_transaction import store_transaction, transactions
from tests.ingest.decode.cell.samples import grow, trees
from tests.ingest.decode.cell.test_fuzz import mutate
from tests.ingest.decode.native.samples import check_equal, compare, wrap, wrap_transaction
from tests.ingest.networks import Network, bundle_of
from tests.ingest.packs import scan_pack
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_bundles, decode_in_python
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError
from tonlake.lake.account import MASTERCHAIN

pytestmark = pytest.mark.skipif(not native.is_used(), reason=native.describe())

BITS = 4 + 4 + 4 + 1 + 4 + 4 + 64 + 32 + 1  # of an empty internal message, up to its body


@pytest.mark.parametrize("most", [10, pytest.param(30, marks=pytest.mark.long)])
def test_a_network_decodes_the_same(network: Network, most: int) -> None:
    """Of thirty masterchain blocks ten; the reference takes its time."""
    some = [bundle for at, bundle in enumerate(network.bundles) if at % 30 < most]
    check_equal(decode_bundles(some), decode_in_python(some))


def test_hardly_a_block_is_declined(network: Network) -> None:
    declined: list[BlockId] = []

    def reference(bundles: Sequence[McBundle], _tops: object) -> dict[str, pa.Table]:
        declined.extend(raw.id for raw in _all_blocks(bundles))
        return decode_in_python(bundles)

    native.decode_bundles(network.bundles, reference)
    assert len(declined) <= len(network.bundles) // 50


def _reference_blocks(shared: Path) -> Iterator[bytes]:
    for folder in ("blocks", "bundles", "chains"):
        for file in sorted((shared / "data" / folder).rglob("*.boc")):
            if "state" not in file.name:
                yield file.read_bytes()
    for file in sorted((shared / "data/packs").glob("*.pack")):
        for *_, data in scan_pack(file):
            yield data


def test_reference_blocks_decode_the_same(shared: Path) -> None:
    results = [compare(bundle_of(data)) for data in _reference_blocks(shared)]
    assert len(results) > 850
    assert set(results) <= {"accepted", "declined"}
    assert results.count("declined") <= 10


def test_declined_blocks_are_put_in_their_place(demo: Network) -> None:
    """Bundles that the extension leaves out come from the reference, rows and cells in order."""
    few = demo.bundles[100:140]
    expected = decode_in_python(few)
    for every in (2, 3, 7):
        blocks = [raw.id for bundle in few for raw in bundle.blocks][::every]
        check_equal(_decode_without(few, set(blocks)), expected)


def _decode_without(bundles: list[McBundle], left_out: set[BlockId]) -> dict[str, object]:
    """Decode with an extension that declines some blocks: under a wrong hash it does."""
    spoiled = [
        McBundle(bundle.mc_seqno, tuple(_misname(raw, left_out) for raw in bundle.blocks))
        for bundle in bundles
    ]
    right = {(raw.id.workchain, raw.id.shard, raw.id.seqno): raw for raw in _all_blocks(bundles)}

    def reference(declined: tuple[McBundle, ...], _tops: object) -> dict[str, object]:
        (bundle,) = declined
        (raw,) = bundle.blocks
        again = right[raw.id.workchain, raw.id.shard, raw.id.seqno]
        return decode_in_python((McBundle(bundle.mc_seqno, (again,)),))

    return native.decode_bundles(spoiled, reference)  # type: ignore[arg-type]


def _all_blocks(bundles: Sequence[McBundle]) -> list[RawBlock]:
    return [raw for bundle in bundles for raw in bundle.blocks]


def _misname(raw: RawBlock, left_out: set[BlockId]) -> RawBlock:
    if raw.id not in left_out:
        return raw
    name = raw.id
    wrong = BlockId(name.workchain, name.shard, name.seqno, name.root_hash, bytes(32))
    return RawBlock(wrong, raw.data)


def test_threads_do_not_disturb_each_other(demo: Network) -> None:
    parts = [demo.bundles[start : start + 10] for start in range(0, 80, 10)]
    expected = [decode_bundles(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for mine, other in zip(pool.map(decode_bundles, parts), expected, strict=True):
                check_equal(mine, other)


def test_transactions_of_every_kind() -> None:
    """Most are accepted; times and depths of anycast may be out of range."""
    results = []

    @settings(max_examples=100, deadline=None)
    @given(transactions(), st.data())
    def decode(sample: tuple[bytes, Columns], data: st.DataObject) -> None:
        tree = parse_boc(sample[0])
        account = draw_account(tree, data) if data.draw(st.booleans()) else None
        bundle = wrap_transaction(tree, 0, data.draw(st.sampled_from([None, 10, 11, 12])), account)
        versions = data.draw(st.sampled_from([{}, {0: 11}, {0: 12}, {7: 11, 0: 12}, {7: 12}]))
        results.append(compare(msgspec.structs.replace(bundle, versions=versions)))

    decode()
    assert results.count("accepted") > len(results) / 2
    assert "declined" not in results


@settings(max_examples=100, deadline=None)
@given(messages(), st.data())
def test_messages_of_every_kind(
    sample: tuple[CellTree, int, Columns, int | None], data: st.DataObject
) -> None:
    tree, message, _, version = sample
    transaction = _store_around(data, tree, message)
    assert compare(wrap_transaction(tree, transaction, version)) != "declined"


def _store_around(data: st.DataObject, tree: CellTree, *messages: int) -> int:
    """Store a transaction that receives the first message and sends all."""
    inner = Fields(data.draw, tree)
    tag, bits, store = DESCRIPTIONS["merge_prepare"]
    inner.builder.store_uint(tag, bits)
    store(inner)
    to = Fields(data.draw, tree)
    return store_transaction(to, inner.builder.end(), in_msg=messages[0], out_msgs=tuple(messages))


@settings(max_examples=80, deadline=None)
@given(trees(size=80), st.booleans(), st.data())
def test_bodies_of_every_shape(
    sample: tuple[CellTree, int],
    inline: bool,  # noqa: FBT001 - drawn
    data: st.DataObject,
) -> None:
    """Trees with shared, equal and exotic cells, in the node's order."""
    tree, body = sample
    message = CellBuilder(tree).store_uint(0, BITS)
    if inline and tree.kind(body) == -1 and tree.bit_length(body) < 800:
        message.store_bit(0).store_slice(tree.slice(body))
    else:
        message.store_bit(1).store_ref(body)
    transaction = _store_around(data, tree, message.end())
    if not tree.level_mask(transaction):
        assert compare(wrap_transaction(tree, transaction)) != "declined"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32), st.data())
def test_parts_that_many_bodies_share(seed: int, data: st.DataObject) -> None:
    """Such a part is ordered and written once, and put into all bags that have it."""
    choices = Random(seed)  # noqa: S311 - no secret
    tree = CellTree()
    shared = [grow(tree, choices, choices.randrange(3, 90)) for _ in range(choices.randrange(1, 3))]
    messages = []
    for _ in range(choices.randrange(9, 14)):
        kids = [grow(tree, choices, choices.randrange(1, 40)) for _ in range(choices.randrange(3))]
        kids += shared
        choices.shuffle(kids)
        if choices.randrange(2):
            kids = [append_cell(tree, tree.count, 32, tuple(kids))]
        body = append_cell(tree, tree.count, 32, tuple(kids))
        messages.append(CellBuilder(tree).store_uint(1, BITS + 1).store_ref(body).end())
    assert compare(wrap_transaction(tree, _store_around(data, tree, *messages))) != "declined"


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_a_shared_part_of_few_cells_in_large_bags(data: st.DataObject) -> None:
    """A part can weigh much and have two cells, and the bag be too large for parts."""
    tree = CellTree()
    below = append_cell(tree, tree.count, 32, ())
    shared = append_cell(tree, tree.count, 32, (below,) * 4)
    shared = append_cell(tree, tree.count, 32, (shared,) * 4)
    messages = []
    for number in range(10):
        body = grow(tree, Random(number), 300 if number % 2 else 3)  # noqa: S311 - no secret
        body = append_cell(tree, tree.count, 32, (body, shared))
        messages.append(CellBuilder(tree).store_uint(1, BITS + 1).store_ref(body).end())
    assert compare(wrap_transaction(tree, _store_around(data, tree, *messages))) != "declined"


def test_blocks_with_garbage_in_their_cells(demo: Network) -> None:
    results = []
    for dice in throw(300, 5):
        raw = dice.choice(dice.choice(demo.bundles).blocks)
        is_named = raw.id.workchain != MASTERCHAIN and dice.randrange(2) == 0
        try:
            tree = parse_boc(raw.data, check_crc=False)
            bag = spoil_cells(tree, dice, places=dice.randrange(1, 4))
            root_hash = bytes(32) if is_named else parse_boc(bag).hash(0)
        except BocError:
            continue
        bundle = msgspec.structs.replace(
            wrap(bag, raw, root_hash), versions={0: dice.choice((11, 12))}
        )
        results.append(compare(bundle, is_named=is_named))
    assert results.count("accepted") > results.count("declined")


def test_damaged_bags(demo: Network) -> None:
    for dice in throw(500, 6):
        raw = dice.choice(dice.choice(demo.bundles).blocks)
        bag = mutate(raw.data, dice)
        try:
            tree = parse_boc(bag, check_crc=False)
            root_hash = tree.hash(tree.roots[0])
        except BocError:
            root_hash = bytes(32)
        compare(wrap(bag, raw, root_hash))


def test_wrong_arguments_are_refused() -> None:
    core = native._extension
    good = (b"", 0, 0, 0, bytes(32), bytes(32), 0)
    assert core.decode([good], 1)[0] == 0
    for bad in (None, (), good[:6], (*good[:4], b"", *good[5:]), (1, *good[1:])):
        with pytest.raises((TypeError, ValueError)):
            core.decode([bad], 1)
    with pytest.raises(OverflowError):
        core.decode([(b"", 1 << 64, *good[2:])], 1)
    for versions in ([(0, 12)], ((0,),), ((0, 12, 1),), (12,), ((0, "12"),)):
        with pytest.raises(TypeError):
            core.decode([good], 1, 0, versions)


@pytest.mark.parametrize(("setting", "name"), [("0", "python (TONLAKE_NATIVE=0)"), ("1", "native")])
def test_the_environment_chooses(setting: str, name: str) -> None:
    code = "from tonlake.ingest.decode import native; print(native.describe())"
    environment = os.environ | {"TONLAKE_NATIVE": setting}
    found = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert found.strip() == name


def test_commands_name_the_decoder() -> None:
    done = run("config", "--json")
    assert native.describe() in done.stderr
    assert native.describe() not in done.stdout


SOURCE = Path(native_package.__file__).with_name("sha256.c")


@pytest.fixture(scope="module", params=["plain", "best"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp(request.param) / "sha256.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(path), str(SOURCE)], check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.sha256.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    if request.param == "best":
        loaded.sha256_open()
    return loaded


@given(st.binary(max_size=300))
def test_hashes_are_those_of_openssl(library: ctypes.CDLL, data: bytes) -> None:
    found = ctypes.create_string_buffer(32)
    library.sha256(data, len(data), found)
    assert found.raw == sha256(data).digest()
