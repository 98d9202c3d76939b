"""Keys of messages in postings: by hash, by opcode, by body.

Every message has up to two ends: the transaction that sent it, and the one that consumed it. The
postings ``message`` have ends by hash and normalized hash; ``opcode`` and ``body`` have each
message once, by creation, at its consumer if that is in the segment. An external message may be
consumed more than once: ``opcode_again`` and ``body_again`` have all ends of such messages.
"""

NO_LT = (1 << 63) - 1
"""Creation of messages without one: sorts after all others."""


def opcode_key(opcode: int) -> int:
    """Return the key of an opcode."""
    return opcode & 0xFFFFFFFF
