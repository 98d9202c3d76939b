"""``tonlake sql`` with signatures; tests of statements are in ``tests/lake/command``."""

from functools import partial
from pathlib import Path

from tests import commands

TRANSFER = "transfer#0f8a7ea5 query_id:uint64 amount:Coins destination:MsgAddress = Body"
TOTAL = "select count(*) as n, sum(amount) as total from {}"


run = partial(commands.run, "sql", catch_exceptions=False)


def test_signatures_as_text_file_and_name(demo_lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "transfer.tlb"
    file.write_text(TRANSFER)
    given = {"transfer": (TRANSFER, f"@{file}"), "jetton_transfer": ("jetton_transfer",)}
    answers = {
        run(TOTAL.format(name), "--lake", demo_lake, "--format", "csv", "--signature", text).output
        for name, texts in given.items()
        for text in texts
    }
    [answer] = answers
    assert int(answer.split()[1].split(",")[0]) > 0


def test_what_does_not_fit_is_counted_on_stderr(demo_lake: Path) -> None:
    done = run("from t", "--lake", demo_lake, "--signature", "t#0f8a7ea5 a:bits1023 = Body")
    assert (done.exit_code, "do not fit it: " in done.stderr) == (0, True)


def test_wrong_signatures(demo_lake: Path, tmp_path: Path) -> None:
    for text, complaint in (
        ("t#1 = B", "no constructor"),
        (f"@{tmp_path / 'none'}", "none: No such file or directory"),
    ):
        done = run("select 1", "--lake", demo_lake, "--signature", text)
        assert (done.exit_code, complaint in done.stderr) == (2, True), done.stderr
