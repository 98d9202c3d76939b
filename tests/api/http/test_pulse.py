"""How late an event loop is, told by a loop whose time passes when the test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tonlake.api.http.pulse import EVERY_S, Pulse

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """Calls what it was asked for when it is told to."""

    now_s = 100.0

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.cancelled = 0

    def __call__(self) -> float:
        return self.now_s

    def call_later(self, _after_s: float, call: Callable[..., None], *given: Any) -> Loop:
        self.waiting.append(lambda: call(*given))
        return self

    def cancel(self) -> None:
        self.cancelled += 1

    def turn(self, after_s: float) -> None:
        self.now_s += after_s
        self.waiting.pop()()


def test_a_loop_that_falls_behind_is_seen_at_once_and_until_it_is_back() -> None:
    loop: Any = Loop()
    pulse = Pulse(loop)
    assert pulse.measure_s() == 0
    pulse.start(loop)
    loop.turn(EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += EVERY_S + 3
    assert pulse.measure_s() == pytest.approx(3)  # the beat is overdue
    loop.turn(1)
    assert pulse.measure_s() == pytest.approx(4)  # it was late, and the next one is not yet due
    loop.turn(EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += 5
    pulse.stop()
    assert loop.cancelled == 1
    loop.now_s += 5
    assert pulse.measure_s() == 0  # nobody beats, so nothing is late
    Pulse().stop()
