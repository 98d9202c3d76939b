"""Exceptions of a run, with their exit codes."""

from dataclasses import dataclass


class Exit:
    """Exit codes of the machine; OUT_OF_GAS is the bitwise not of 13: code cannot throw it."""

    STACK_UNDERFLOW = 2
    STACK_OVERFLOW = 3
    INTEGER_OVERFLOW = 4
    RANGE_CHECK = 5
    INVALID_OPCODE = 6
    TYPE_CHECK = 7
    CELL_OVERFLOW = 8
    CELL_UNDERFLOW = 9
    DICTIONARY_ERROR = 10
    UNKNOWN_ERROR = 11
    OUT_OF_GAS = -14


@dataclass(eq=False)
class VmError(Exception):
    """An exception that code can catch, with its exit code."""

    code: int


class OutOfGas(Exception):
    """The gas limit is exceeded; code cannot catch it."""
