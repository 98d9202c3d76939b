"""A clock that a test sets."""


class Clock:
    """A manual clock."""

    def __init__(self, now_s: float = 0.0) -> None:
        """Start at a time."""
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
