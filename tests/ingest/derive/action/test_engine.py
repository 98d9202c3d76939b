"""The order in which rules see the blocks of a trace is the same in every run."""

from tonlake.ingest.derive.action.classifier import Index, RuleBook, run_rules
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import Pattern, comment
from tonlake.ingest.derive.action.rule import CALL, TRANSFER, Block, Draft, Rule


def test_blocks_of_one_place_come_in_the_order_in_which_they_were_added() -> None:
    made = [Block(kind) for _ in range(50) for kind in (CALL, TRANSFER)]
    blocks = made[::2][::-1] + made[1::2]
    index = Index(blocks)
    assert index.find(frozenset({CALL})) == blocks[:50]
    assert index.find(frozenset({CALL, TRANSFER})) == blocks
    index.remove(blocks[0])
    index.add(blocks[0])
    assert index.find(frozenset()) == [*blocks[1:], blocks[0]]


def test_blocks_come_breadth_first_and_by_logical_time() -> None:
    blocks = [Block(CALL) for _ in range(4)]
    for block, (depth, lt) in zip(blocks, [(1, 5), (0, 9), (1, 4), (0, 8)], strict=True):
        block.depth, block.min_lt = depth, lt
    assert Index(blocks).find(frozenset({CALL})) == [blocks[at] for at in (3, 1, 2, 0)]


def merges(name: str, *heads: str | int, into: str) -> Rule:
    """Return a rule that turns a block into one of another type."""
    return Rule(name, Pattern(*heads), lambda _match: Draft(into, {}))


def run(blocks: list[Block], *rules: Rule) -> list[tuple[str, str]]:
    """Return the types of the top blocks with the rule that made each."""
    top = run_rules(blocks, RuleBook(rules), Interfaces())
    return [(block.type, block.rule) for block in top]


def test_the_result_of_a_rule_is_only_for_later_rules() -> None:
    rules = [
        merges("early", "made", into="never"),
        merges("maker", CALL, into="made"),
        merges("again", "made", into="made"),
        merges("late", "made", into="done"),
        merges("last", CALL, into="never"),
    ]
    assert run([Block(CALL)], *rules) == [("done", "late")]
    assert run([Block(TRANSFER)], *rules) == [(TRANSFER, "")]


def test_rules_keep_their_order_regardless_of_the_matching_head() -> None:
    block = Block(CALL, columns={"opcode": 7})
    rules = [merges("any", into="a"), merges("opcode", 7, into="b"), merges("type", CALL, into="c")]
    assert run([block], *rules[1:]) == [("b", "opcode")]
    assert run([Block(CALL)], *rules[1:]) == [("c", "type")]
    assert run([Block(TRANSFER)], *rules) == [("a", "any")]


def test_rules_are_tried_only_if_a_trace_has_their_required_heads() -> None:
    tried: list[Block] = []

    def test(block: Block) -> bool:
        tried.append(block)
        return True

    anchor = Pattern(CALL).where(test)
    rule = Rule("pair", anchor.then(Pattern(7)), lambda _match: Draft("pair", {}))
    lone, first = Block(CALL), Block(CALL)
    assert run([lone], rule) == [(CALL, "")]
    assert tried == []
    first.connect(Block(CALL, columns={"opcode": 7}))
    assert run([first], rule) == [("pair", "pair")]
    assert tried == [first]
    bare = Block(CALL)
    optional = Rule("bare", anchor.then(Pattern(7).maybe), lambda _match: None)
    assert run([bare], optional) == [(CALL, "")]
    assert tried == [first, bare]


def test_transfers_are_found_by_their_comment() -> None:
    rule = Rule("comment", comment("d", "D"), lambda _match: Draft("deposit", {}))
    for text, found in [("d", "deposit"), ("D", "deposit"), ("dd", TRANSFER), (None, TRANSFER)]:
        block = Block(TRANSFER, columns={"ton_transfer_data": {"content": text}})
        [(kind, _)] = run([block], rule)
        assert kind == found
