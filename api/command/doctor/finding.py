"""What a check found, and what to do about it."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at; ``advice`` says what to do unless it is in order."""

    subject: str
    level: Level
    text: str
    advice: str = ""


def worst_of(findings: list[Finding]) -> Level:
    """Return the level of the worst finding."""
    levels = {one.level for one in findings}
    if "problem" in levels:
        return "problem"
    return "warning" if "warning" in levels else "ok"
