"""The machine ends as other engines do: the node's recorded emulator, and tonpy."""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import read_lines
from tests.ingest.derive.tvm.contracts import list_calls, read_lake, read_recorded
from tests.ingest.derive.tvm.machine.differences import TONPY, list_unexplained
from tests.ingest.derive.tvm.machine.drawing import draw_program, list_drawn
from tests.ingest.derive.tvm.programs import assemble, make_context, make_data, repeat
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    Context,
    GetMethodCall,
    PreviousBlocks,
    StackLimits,
    TvmNan,
    TvmOpaque,
    join_libraries,
)
from tonlake.ingest.derive.tvm.machine.cell import Builder
from tonlake.ingest.derive.tvm.machine.code import parse_form
from tonlake.ingest.derive.tvm.machine.fault import Exit
from tonlake.ingest.derive.tvm.machine.run import execute, open_bag, run_call
from tonlake.ingest.derive.tvm.machine.vmstack import build_stack
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

GAS = 1_000_000
LIMITS = StackLimits(entries=8000, depth=100, boc_bytes=16 << 20)


@pytest.fixture(scope="module")
def context(config: bytes) -> Context:
    return make_context(config, 11, PreviousBlocks())


def test_recorded_programs(shared: Path, config: bytes) -> None:
    """Exit code, gas and the whole stack, continuations included, at versions 11, 13 and 15."""
    contexts = {version: make_context(config, version, None) for version in (11, 13, 15)}
    data = open_bag(make_data())
    different: Counter[str] = Counter()
    count = 0
    for row in read_lines(shared / "data" / "tvm" / "programs.jsonl.zst"):
        code = open_bag(base64.b64decode(row["code"]))
        ended = execute(code, data, [0], contexts[row["v"]], GAS)
        wanted = parse_boc(base64.b64decode(row["stack"]))
        found = ended.exit_code, ended.gas_used, build_stack(ended.stack).hash
        if found != (row["exit"], row["gas"], wanted.hash(wanted.roots[0])):
            different[row["op"]] += 1
        count += 1
    assert not different
    assert count == 22_280


DICTIONARY = "C8706D72F443C801710172F443C801720172F443"
"""Puts 0, 1 and 2 into a dictionary with keys of two bits."""

LIBRARY = "72C8CB077001CBFF7FCF23"
"""Builds a library cell."""

PRUNED = "77810101C8CB0FCBFFCB0F7FCF23"
"""Builds a pruned branch of a cell whose depth is on the stack."""

PROOF = "20D76C21D76873C8CB07CBFFCB0FCC7FCF23"
"""Builds a Merkle proof of a cell."""

CODE = "C8C9D0"
"""Pushes code that does nothing."""


def normalize(value: Any) -> Any:
    """Return a value to compare: cells by hash, as bags of equal cells may differ."""
    if isinstance(value, tuple | list):
        return type(value).__name__, [normalize(item) for item in value]
    if hasattr(value, "boc"):
        tree = parse_boc(value.boc)
        return type(value).__name__, tree.hash(tree.roots[0])
    return type(value).__name__ if isinstance(value, TvmNan | TvmOpaque) else value


def differs_from_tonpy(code: bytes, context: Context) -> bool:
    """Return whether a program ends otherwise than in tonpy."""
    return ends_differently(GetMethodCall(code, make_data(), (0,), context, gas_limit=GAS))


def ends_differently(call: GetMethodCall) -> bool:
    """Return whether a call ends otherwise than in tonpy."""
    from tests.ingest.derive.tvm import oracle  # noqa: PLC0415 - not on every platform

    try:
        found = run_call(call, LIMITS)
    except (TvmStackDeep, TvmStackLarge):
        return False
    wanted = oracle.run_call(call)
    if wanted.exit_code == found.exit_code == Exit.OUT_OF_GAS:
        # tonpy's gas is the limit, the node's what was asked for, as on the stack.
        return bool(normalize(wanted.stack) != normalize(found.stack))
    one, other = (
        (each.exit_code, each.gas_used, normalize(each.stack)) for each in (wanted, found)
    )
    return one != other


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.long)])
def test_drawn_programs_end_as_in_tonpy(context: Context, count: int) -> None:

    def list_different(codes: Iterable[bytes]) -> list[int]:
        return [at for at, code in enumerate(codes) if differs_from_tonpy(code, context)]

    seeds = list_different(map(draw_program, range(count)))
    assert not list_unexplained(TONPY, seeds, 11, list_different)


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize(
    "code",
    [
        "6F0092ED47ED67716F0101ED67D8",  # saves c7 twice: the first one stays
        "A9B31A", "A90300", "B7A9C3",  # divisions that round in no known way
        "6F01D770", "6F01D771",  # CHASHIX and CDEPTHIX of a tuple and nothing else
        "7083FFB7B0", "83FF7FB7B1", "83FF71B7B0",  # QAND and QOR with NaN
        "83FF800CB7AD", "83FF800DB7AD", "83FF810138B7AC", "83FF810137B7AC",  # shifts of NaN
        "83FF7773808034B7A9C0", "7783FF8034B7A924", "7783FF800CB7A920",  # divisions of NaN
        "83FF70B7F924", "81008075B7F924",  # RIST255_QMUL of NaN by 0, of another identity by 5
        "82F4" + "7" * 66,  # PUSHINT of more than 257 bits
        "30ED42D8", "7070ED42D8",  # the handler that ends the run, without values and with some
        f"78{CODE}DB4000", f"7070{CODE}72DB4100",  # RUNVM: too few arguments, too few results
        f"{DICTIONARY}7001710172F4B7", f"{DICTIONARY}7001720172F4B7",  # SUBDICTURPGET
        f"{LIBRARY}D73A", f"{LIBRARY}D73B",  # XLOAD and XLOADQ of what is missing
        f"8103FF{PRUNED}C8CCC9C8CCC9", f"810401{PRUNED}",  # too deep with what is pruned
        f"70{CODE}831DDB4100",  # RUNVM: a count of results of 2^30
        "2075E317F2F492D920ED80F2C83A01",  # REPEATENDBRK saves c0 in c1
        repeat("30833DF801", 0x7FFF, "00" * 15),  # SETGASLIMIT raises no limit
    ],
)  # fmt: skip
def test_corners_of_version_11(context: Context, code: str) -> None:
    """Rules of before versions 13 and 14, which no recorded program shows."""
    assert not differs_from_tonpy(assemble(code), context)


@pytest.mark.usefixtures("tvm")
def test_exotic_cells_need_only_their_children(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes at a level, and checks of what ENDXC builds, visit no whole tree."""
    monkeypatch.setattr("tonlake.ingest.derive.tvm.machine.cell.plant", None)
    code = assemble(f"75{PRUNED}C8CCC920D76901{PROOF}F900")
    assert not differs_from_tonpy(code, context)


def test_parts_to_hash_are_joined_once(context: Context) -> None:
    """A part that is added meets no more than the bits of the last byte."""
    widths = []

    class Bits(int):
        def __ror__(self, before: int) -> int:
            widths.append(before.bit_length())
            return before | int(self)

    stack = [*[Builder(Bits(1), 7)] * 800, 800]
    ended = execute(open_bag(assemble("F90400")), open_bag(make_data()), stack, context, GAS)
    wanted = sha256(int("0000001" * 800, 2).to_bytes(700, "big")).digest()
    assert ended.stack == [int.from_bytes(wanted, "big")]
    assert max(widths) <= 7 + 7


@pytest.mark.parametrize(
    ("version", "code", "exit_code", "gas"),
    [
        (3, "707070A900", 6, 130), (3, "70B7A980", 6, 102),  # decoded, then refused
        (4, "C8C9D73A", 0, 567), (5, "C8C9D73A", 0, 667),  # XLOAD
        (5, "F835", 5, 76),  # GLOBALID
        (8, "306DF836", 7, 112), (9, "306DF836", 2, 112),  # GETGASFEE
        (8, "30716DF473", 7, 130), (9, "30716DF473", 2, 130),  # PFXDICTDEL
        (8, "306DF904FF", 7, 120), (9, "306DF904FF", 2, 120),  # HASHEXT
        (8, "306D71F90600", 7, 138), (9, "306D71F90600", 5, 138),  # HASHEXTA
    ],
)  # fmt: skip
def test_rules_of_other_versions(
    config: bytes, version: int, code: str, exit_code: int, gas: int
) -> None:
    """Before 11; as libemulator and the sandbox answer."""
    context = make_context(config, version, None)
    ended = execute(open_bag(assemble(code)), open_bag(make_data()), [0], context, GAS)
    assert (ended.exit_code, ended.gas_used) == (exit_code, gas)


STANDARD = f"100{0:08b}{1:0256b}"
DATES = f"{0:096b}"


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize(
    "message",
    [
        f"1100{2:02b}{0:09b}{DATES}00",  # an external address by its first bit
        f"1100{3:02b}{8:09b}{255:08b}{DATES}00",
        f"010000{STANDARD}{1:04b}{0:08b}{0:09b}{DATES}00",  # an amount with a zero byte
        f"010000101{0:05b}{STANDARD[3:]}{0:013b}{DATES}00",  # anycast of no bits
        f"010000{STANDARD}{0:05b}{7:04b}{1 << 55:056b}{0:04b}{DATES}00",  # IHR is disabled
        f"000000{STANDARD}{0:05b}{7:04b}{1 << 55:056b}{0:04b}{DATES}00",
    ],
)  # fmt: skip
def test_messages_to_send(context: Context, message: str) -> None:
    """Which messages SENDMSG accepts, and its fee."""
    tree = CellTree()
    cell = CellBuilder(tree).store_uint(int(message, 2), len(message)).end()
    code = CellBuilder(tree).store_uint(0x8870FB08, 32).store_ref(cell).end()
    assert not differs_from_tonpy(serialize_boc(tree, [code]), context)


@pytest.mark.usefixtures("tvm")
def test_message_in_a_library(context: Context) -> None:
    """The dictionary of extra currencies is below the library, not below the library cell."""
    message = f"010000{STANDARD}{0:04b}1{0:08b}{DATES}00"
    tree = CellTree()
    currencies = CellBuilder(tree).store_uint(5, 40).end()
    public = CellBuilder(tree).store_uint(int(message, 2), len(message)).store_ref(currencies).end()
    reference = CellBuilder(tree).store_uint(2, 8).store_bytes(tree.hash(public)).end(exotic=True)
    code = CellBuilder(tree).store_uint(0x8870FB08, 32).store_ref(reference).end()
    call = GetMethodCall(
        serialize_boc(tree, [code]), make_data(), (0,), context, gas_limit=GAS,
        libraries=join_libraries({tree.hash(public): serialize_boc(tree, [public])}),
    )  # fmt: skip
    assert not ends_differently(call)


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("gas", [265, 300])
def test_cheap_look_up_of_a_currency(context: Context, gas: int) -> None:
    """GETEXTRABALANCE needs no more gas in between than it costs in the end: 267 with the rest."""
    rich = msgspec.structs.replace(context, currencies={7 * each: each for each in range(1, 200)})
    code = assemble("3077F880")
    assert not ends_differently(GetMethodCall(code, make_data(), (0,), rich, gas_limit=gas))


def test_extra_flags_count(config: bytes) -> None:
    """Since version 12 the field of the IHR fee keeps its size, and the body moves to a cell."""
    fees = []
    message = f"0100{STANDARD * 2}{0:05b}{8:04b}{1 << 63:064b}{0:04b}{DATES}00{1:0290b}"
    tree = CellTree()
    cell = CellBuilder(tree).store_uint(int(message, 2), len(message)).end()
    boc = serialize_boc(tree, [CellBuilder(tree).store_uint(0x8870FB08, 32).store_ref(cell).end()])
    for version in (11, 12):
        context = make_context(config, version, None)
        ended = execute(open_bag(boc), open_bag(make_data()), [0], context, GAS)
        fees.append(ended.stack[-1])
    assert fees == [400_000, 400_000 + 40_000 + 290 * 400]


ONE = (
    "97F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905"
    "A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB"
)
TWO = (
    "93E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E"
    "024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8"
)
"""The generators of BLS12-381."""

NUMBER = "82F0" + "5A" * 32


def push_point(point: str, *, spoilt: bool = False) -> str:
    """Return PUSHSLICE in hex; a ``spoilt`` point has a bit changed and is outside its group."""
    octets = bytearray.fromhex(point)
    octets[20] ^= 0x10 * spoilt
    size = len(octets)
    value = (0x8D << 10 | size) << 8 * size | int.from_bytes(octets, "big")
    return f"{value << 6 | 1 << 5:0{2 * size + 6}X}"


def chain(*parts: str) -> bytes:
    """Return code in cells, each of which continues in the next."""
    tree = CellTree()
    following: list[int] = []
    for part in reversed(parts):
        node = CellBuilder(tree).store_uint(int(part, 16), len(part) * 4)
        for child in following:
            node.store_ref(child)
        following = [node.end()]
    return serialize_boc(tree, following)


def list_programs_on_points() -> Iterator[bytes]:
    """Yield programs on points outside the groups, for which the node's package has own results."""
    for group, point in (("F9301", ONE), ("F9302", TWO)):
        good, bad = push_point(point), push_point(point, spoilt=True)
        for verb in "01":  # ADD, SUB
            yield chain(good, bad, group + verb)
            yield chain(bad, good, group + verb)
        yield chain(bad, f"{NUMBER}{group}3")  # MUL
        yield chain(push_point(f"{0:0{len(point)}}"), f"70{group}3")
        yield chain(bad, f"{NUMBER}71{group}4")  # MULTIEXP
        yield chain(bad, NUMBER, good, f"{NUMBER}72{group}4")
        yield chain(push_point("E0" + point[2:]), f"{group}7")  # INGROUP
    good, bad = push_point(TWO), push_point(TWO, spoilt=True)
    yield chain(bad, good, "72F93001")  # AGGREGATE
    yield chain(good, bad, "72F93001")
    nothing, nothing2 = (push_point(f"C0{0:0{len(point) - 2}}") for point in (ONE, TWO))
    yield chain(nothing, nothing2, "71F93030")  # PAIRING
    yield chain(push_point(ONE), nothing2, nothing, good, "72F93030")


@pytest.mark.usefixtures("tvm")
def test_points_outside_the_groups(context: Context) -> None:
    programs = list(list_programs_on_points())
    different = [differs_from_tonpy(code, context) for code in programs]
    assert different == [False] * len(programs)


STACKS = "", "83FF", "6D70", "707070", "70", "6D", "7083FF", "6D83FF83FF"
"""Nothing, or some of 0, NaN and null."""


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("count", [4, pytest.param(len(STACKS), marks=pytest.mark.long)])
def test_short_stacks(context: Context, count: int) -> None:
    """Which values an instruction takes and checks first decides how a run ends."""
    different = set()
    for row in list_drawn(11):
        size = row.opcode_bits + sum(parse_form(form).bits for form in row.operands)
        opcode = f"{row.first:06X}0000"[: size // 4]
        codes = [assemble(f"30{stack}{opcode}") for stack in STACKS[:count] if not size % 4]
        if any(differs_from_tonpy(code, context) for code in codes):
            different.add(row.name)
    assert not {name for name in different if not re.fullmatch("|".join(TONPY), name)}


@pytest.mark.long
@pytest.mark.usefixtures("tvm")
def test_get_methods_end_as_in_tonpy(context: Context, shared: Path, demo_lake: Path) -> None:
    different = [
        stack
        for contract, stack in list_calls([*read_lake(demo_lake), *read_recorded(shared)])
        if ends_differently(GetMethodCall(*contract, stack, context, gas_limit=GAS))
    ]
    assert not different
