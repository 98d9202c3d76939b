"""The pattern language."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.basic import build_blocks
from tonlake.ingest.derive.action.model import build_nodes
from tonlake.ingest.derive.action.pattern import Pattern, anything, built, call, one_of, repeat
from tonlake.ingest.derive.action.rule import Block

A = account("a")


def send(step: Step, *opcodes: int) -> Step:
    """Send messages one after the other, each from the last recipient; return the last step."""
    for opcode in opcodes:
        step = step.send(account(str(opcode)), Cell(opcode))
    return step


def first(scene: Scene) -> Block:
    """Return the block of the first internal message."""
    (root,) = build_blocks(build_nodes(scene.trace()))
    return root.following[0]


def opcodes(pattern: Pattern, block: Block) -> list[int] | None:
    """Return the opcodes of the blocks that a pattern matches, in order; None for no match."""
    match = pattern.match(block)
    return None if match is None else sorted({each.opcode or 0 for each in match.blocks})


@pytest.fixture
def chain() -> Block:
    """Return the first of a chain 11 -> 12 -> 13, where 12 also sends 14."""
    scene = Scene()
    step = send(scene.external(A), 0x11, 0x12)
    send(step, 0x13)
    send(step, 0x14)
    return first(scene)


def test_children_in_any_order(chain: Block) -> None:
    both = call(0x11).then(call(0x12).then(call(0x14), call(0x13)))
    assert opcodes(both, chain) == [0x11, 0x12, 0x13, 0x14]
    assert opcodes(call(0x11).then(call(0x12).then(call(0x13), call(0x13))), chain) is None


def test_optional_parts(chain: Block) -> None:
    assert opcodes(call(0x11).then(call(0x15).maybe), chain) == [0x11]
    assert opcodes(call(0x11).then(call(0x15)), chain) is None
    deeper = call(0x11).then(call(0x12).then(call(0x15).maybe, call(0x13).maybe))
    assert opcodes(deeper, chain) == [0x11, 0x12, 0x13]


def test_parents(chain: Block) -> None:
    second = chain.following[0]
    assert opcodes(call(0x12).after(call(0x11)), second) == [0x11, 0x12]
    assert opcodes(call(0x12).after(call(0x15)), second) is None
    assert opcodes(call(0x12).after(call(0x15).maybe), second) == [0x12]


def test_the_parent_of_a_block_is_checked_before_long_chains(scene: Scene) -> None:
    """Every message of a chain may be an anchor: walking the rest for each would be quadratic."""
    send(scene.external(A), *[0x21] * 50)
    asked: list[Block] = []

    def count(block: Block) -> bool:
        asked.append(block)
        return True

    links = repeat(call(0x21).where(count), until=call(0x22))
    shape = call(0x21).then(links).after(one_of(call(0x23), built("jetton_transfer")))
    block = first(scene)
    while block.following:
        assert shape.match(block) is None
        (block,) = block.following
    assert not asked


def test_alternatives_and_names(chain: Block) -> None:
    shape = one_of(call(0x15), call(0x11, name="inner")).named("outer")
    match = shape.match(chain)
    assert match is not None
    assert match["outer"] is match["inner"] is chain
    assert match.get("missing") is None
    assert "missing" not in match
    assert opcodes(one_of(call(0x15), built("ton_transfer")), chain) is None


def test_tests_of_blocks(chain: Block) -> None:
    assert opcodes(anything().where(lambda block: block.opcode == 0x11), chain) == [0x11]
    assert opcodes(anything().where(lambda block: block.opcode == 0x12), chain) is None

    def fail(block: Block) -> bool:
        return bool(block.message.arguments().uint(64))

    assert opcodes(call(0x11).where(fail), chain) is None


@pytest.mark.parametrize("length", [0, 1, 5, 500])
def test_chains(scene: Scene, length: int) -> None:
    send(scene.external(A), *[0x21] * length, 0x22)
    end = repeat(call(0x21, name="link"), until=call(0x22, name="end"))
    match = end.match(first(scene))
    assert match is not None
    assert len(match.all("link")) == length
    assert match["end"].opcode == 0x22
    assert repeat(call(0x21), until=call(0x23)).match(first(scene)) is None


def test_excess_and_bounce_belong_to_parts_not_to_the_anchor(scene: Scene) -> None:
    step = send(scene.external(A), 0x31)
    for opcode in (0xD53276DB, 0xFFFFFFFF, 0x32):
        send(step, opcode)
    assert opcodes(call(0x31), first(scene)) == [0x31]
    absorbed = [0x31, 0xD53276DB, 0xFFFFFFFF]
    assert opcodes(call(0x31).with_excesses, first(scene)) == absorbed
