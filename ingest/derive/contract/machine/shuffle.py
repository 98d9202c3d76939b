"""Instructions that rearrange the stack, push null, and pack and unpack tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.machine.stack import Declined

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step
    from tonlake.ingest.derive.contract.machine.stack import Stack

Decoder = "Callable[[Code], list[Step]]"
_MAX_TUPLE = 255


def exchange(one: int, other: int) -> Step:
    """Return XCHG s(one), s(other)."""
    first, second = -1 - one, -1 - other

    def step(stack: Stack) -> None:
        stack[first], stack[second] = stack[second], stack[first]

    return step


def push(place: int) -> Step:
    """Return PUSH s(place)."""
    index = -1 - place

    def step(stack: Stack) -> None:
        stack.append(stack[index])

    return step


def pop(place: int) -> Step:
    """Return POP s(place)."""
    index = -1 - place

    def step(stack: Stack) -> None:
        stack[index] = stack[-1]
        stack.pop()

    return step


_SWAP = exchange(0, 1)


def _reverse(count: int, place: int) -> Step:
    def step(stack: Stack) -> None:
        stack.need(count + place)
        end = len(stack) - place
        stack[end - count : end] = stack[end - count : end][::-1]

    return step


def _swap_blocks(below: int, above: int) -> Step:
    def step(stack: Stack) -> None:
        stack.need(below + above)
        start = len(stack) - below - above
        stack[start:] = stack[start + below :] + stack[start : start + below]

    return step


def _drop(count: int, kept: int = 0) -> Step:
    def step(stack: Stack) -> None:
        stack.need(count + kept)
        end = len(stack) - kept
        del stack[end - count : end]

    return step


def _rotate(stack: Stack) -> None:
    stack[-3], stack[-2], stack[-1] = stack[-2], stack[-1], stack[-3]


def _rotate_back(stack: Stack) -> None:
    stack[-3], stack[-2], stack[-1] = stack[-1], stack[-3], stack[-2]


def _double_two(stack: Stack) -> None:
    stack += (stack[-2], stack[-1])


def _push_over_two(stack: Stack) -> None:
    stack += (stack[-4], stack[-3])


def _pick(stack: Stack) -> None:
    place = stack.number(255)
    stack.append(stack[-1 - place])


def _drop_number(stack: Stack) -> None:
    _drop(stack.number(255))(stack)


def _depth(stack: Stack) -> None:
    stack.append(len(stack))


def _is_null(stack: Stack) -> None:
    stack.append(-1 if stack.pop() is None else 0)


def _push_null(stack: Stack) -> None:
    stack.append(None)


def _pass(_stack: Stack) -> None:
    pass


def _null_under(*, depth: int, when: bool) -> Step:
    """Return NULLSWAPIF or a variant: insert null below ``depth`` values; the top one decides."""

    def step(stack: Stack) -> None:
        flag = stack.integer()
        stack.append(flag)
        if bool(flag) is when:
            stack.need(depth)
            stack.insert(len(stack) - depth, None)

    return step


def _make_tuple(count: int) -> Step:
    def step(stack: Stack) -> None:
        stack.need(count)
        start = len(stack) - count
        stack[start:] = [tuple(stack[start:])]

    return step


def _take_tuple(stack: Stack) -> tuple[object, ...]:
    value = stack.pop()
    if value.__class__ is not tuple:
        raise Declined("expected a tuple")
    return value


def _index(place: int) -> Step:
    def step(stack: Stack) -> None:
        stack.append(_take_tuple(stack)[place])

    return step


def _open_tuple(count: int) -> Step:
    def step(stack: Stack) -> None:
        values = _take_tuple(stack)
        if len(values) != count:
            raise Declined("tuple of another length")
        stack += values

    return step


def _index_by_number(stack: Stack) -> None:
    """Leave the value of a tuple at a place from the stack: INDEXVAR."""
    place = stack.number(_MAX_TUPLE - 1)
    stack.append(_take_tuple(stack)[place])


def _count_values(stack: Stack) -> None:
    stack.append(len(_take_tuple(stack)))


def _is_tuple(stack: Stack) -> None:
    stack.append(-1 if stack.pop().__class__ is tuple else 0)


def _take_last(stack: Stack) -> None:
    """Leave the last value of a tuple: LAST."""
    stack.append(_take_tuple(stack)[-1])


def _append_value(stack: Stack) -> None:
    """Append a value to a tuple: TPUSH."""
    value = stack.pop()
    values = _take_tuple(stack)
    if len(values) == _MAX_TUPLE:
        raise Declined("tuple of 255 values")
    stack.append((*values, value))


def _split_last(stack: Stack) -> None:
    """Take the last value off a tuple: TPOP."""
    values = _take_tuple(stack)
    if not values:
        raise Declined("empty tuple")
    stack += (values[:-1], values[-1])


def _by_nibbles(count: int, make: Callable[..., list[Step]]) -> Callable[[Code], list[Step]]:
    return lambda code: make(*(code.take(4) for _ in range(count)))


def _three(code: Code) -> list[Step]:
    """Decode 54xijk: the kind of instruction, then three stack registers."""
    kind, i, j, k = (code.take(4) for _ in range(4))
    if kind not in _THREE:
        raise Declined("unknown instruction")
    return _THREE[kind](i, j, k)


def _exchange_three(i: int, j: int, k: int) -> list[Step]:
    return [exchange(2, i), exchange(1, j), exchange(0, k)]


_THREE: dict[int, Callable[[int, int, int], list[Step]]] = {
    0: _exchange_three,
    1: lambda i, j, k: [exchange(1, i), exchange(0, j), push(k)],
    2: lambda i, j, k: [exchange(1, i), push(j), _SWAP, exchange(0, k)],
    3: lambda i, j, k: [exchange(0, i), push(j), push(k + 1)],
    4: lambda i, j, k: [push(i), exchange(0, 2), exchange(1, j), exchange(0, k)],
    5: lambda i, j, k: [push(i), _SWAP, exchange(0, j), push(k)],
    6: lambda i, j, k: [push(i), _SWAP, push(j), _SWAP, exchange(0, k)],
    7: lambda i, j, k: [push(i), push(j + 1), push(k + 2)],
}


def _block_drop_or_push(code: Code) -> list[Step]:
    count, place = code.take(4), code.take(4)
    return [_drop(place)] if not count else [push(place)] * count


def _drop_below(count: int, kept: int) -> list[Step]:
    if not count:
        raise Declined("unknown instruction")
    return [_drop(count, kept)]


def _exchange_two(code: Code) -> list[Step]:
    one, other = code.take(4), code.take(4)
    if not 0 < one < other:
        raise Declined("unknown instruction")
    return [exchange(one, other)]


def _tuple_pair(code: Code) -> list[Step]:
    return [_index(code.take(2)), _index(code.take(2))]


FIXED: dict[int, list[Step]] = {
    0x00: [_pass],
    **{0x00 | place: [exchange(0, place)] for place in range(1, 16)},
    **{0x10 | place: [exchange(1, place)] for place in range(2, 16)},
    **{0x20 | place: [push(place)] for place in range(16)},
    **{0x30 | place: [pop(place)] for place in range(16)},
    0x58: [_rotate],
    0x59: [_rotate_back],
    0x5A: [_swap_blocks(2, 2)],
    0x5B: [_drop(2)],
    0x5C: [_double_two],
    0x5D: [_push_over_two],
    0x60: [_pick],
    0x65: [_drop_number],
    0x66: [_SWAP, push(1)],
    0x68: [_depth],
    0x6D: [_push_null],
    0x6E: [_is_null],
    **{0x6F00 | count: [_make_tuple(count)] for count in range(16)},
    **{0x6F10 | place: [_index(place)] for place in range(15)},
    **{0x6F20 | count: [_open_tuple(count)] for count in range(16)},
    0x6F81: [_index_by_number],
    0x6F88: [_count_values],
    0x6F8A: [_is_tuple],
    0x6F8B: [_take_last],
    0x6F8C: [_append_value],
    0x6F8D: [_split_last],
    0x6FA0: [_null_under(depth=1, when=True)],
    0x6FA1: [_null_under(depth=1, when=False)],
    0x6FA2: [_null_under(depth=2, when=True)],
    0x6FA3: [_null_under(depth=2, when=False)],
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "10": _exchange_two,
    "11": lambda code: [exchange(0, code.take(8))],
    **{
        f"4{i:X}": lambda code, i=i: _exchange_three(i, code.take(4), code.take(4))  # type: ignore[misc]
        for i in range(16)
    },
    "50": _by_nibbles(2, lambda i, j: [exchange(1, i), exchange(0, j)]),
    "51": _by_nibbles(2, lambda i, j: [exchange(0, i), push(j)]),
    "52": _by_nibbles(2, lambda i, j: [push(i), _SWAP, exchange(0, j)]),
    "53": _by_nibbles(2, lambda i, j: [push(i), push(j + 1)]),
    "54": _three,
    "55": _by_nibbles(2, lambda i, j: [_swap_blocks(i + 1, j + 1)]),
    "56": lambda code: [push(code.take(8))],
    "57": lambda code: [pop(code.take(8))],
    "5E": _by_nibbles(2, lambda i, j: [_reverse(i + 2, j)]),
    "5F": _block_drop_or_push,
    "6C": _by_nibbles(2, _drop_below),
    "6FB": _tuple_pair,
}
"""Decoders of instructions with operands, by prefix in the notation of the TVM."""
