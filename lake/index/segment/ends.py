"""Keys of messages in postings: by hash, by opcode, by body.

Every message has up to two ends: the transaction that made it, and the one that consumed it.
``message`` are ends by hash, and by normal form; ``opcode`` and ``body`` messages, each once, by
creation. One from outside may be consumed more than once: ``opcode_again`` and ``body_again`` are
all ends of those.
"""

NO_LT = (1 << 63) - 1
"""Creation of messages without one: after all others."""


def opcode_key(opcode: int) -> int:
    """Return an opcode's key."""
    return opcode & 0xFFFFFFFF
