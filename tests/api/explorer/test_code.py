"""QR codes: dark modules on white, with a quiet zone all around."""

from tonlake.api.explorer.account import QUIET, draw_code


def test_codes_have_finders_and_a_quiet_zone() -> None:
    code = draw_code(f"ton://transfer/{'A' * 48}")
    side = int(code.partition('viewBox="0 0 ')[2].partition(" ")[0])
    assert f'<path fill="#fff" d="M0 0h{side}v{side}' in code
    assert f'<path stroke="#000" d="M{QUIET} {QUIET}.5h7m' in code
    assert code != draw_code(f"ton://transfer/{'B' * 48}")
