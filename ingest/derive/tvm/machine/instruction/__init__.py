"""The instructions, in groups as in the node's sources; importing them registers them."""

from tonlake.ingest.derive.tvm.machine.code import decode
from tonlake.ingest.derive.tvm.machine.instruction import (  # noqa: F401 - registered
    building,
    closure,
    control,
    dictops,
    environment,
    hashing,
    message,
    number,
    reading,
    shuffle,
)

__all__ = ["decode"]
