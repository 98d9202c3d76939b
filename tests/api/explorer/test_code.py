"""QR codes: finders in three corners, and a quiet zone all around."""

import re

from tonlake.api.explorer.account import QUIET, draw_code

FINDER = 7


def test_codes_have_finders_and_a_quiet_zone() -> None:
    code = draw_code(f"ton://transfer/{'A' * 48}")
    dark = {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h", code.path)}
    assert min(min(place) for place in dark) == QUIET
    assert max(max(place) for place in dark) == code.size - QUIET - 1
    far = code.size - QUIET - FINDER
    for left, top in ((QUIET, QUIET), (far, QUIET), (QUIET, far)):
        for at in range(FINDER):
            assert {(left + at, top), (left, top + at)} <= dark
        assert (left + 1, top + 1) not in dark


def test_texts_have_codes_of_their_own() -> None:
    assert draw_code("a").path != draw_code("b").path
