"""The table of decoded bodies: equal to the decoder's results, once for every range."""

import shutil
from pathlib import Path

from tests.commands import run
from tests.ingest.facts import ask
from tonlake.ingest.derive.body.body import decode_message_body
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.log.place import Derivation
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import MESSAGE_BODIES
from tonlake.lake.settings import LakeSettings


def leave_out_bodies(lake: Path) -> int:
    """Make the lake one of a version without decoded bodies; return the number of removed files."""
    state = read_state(lake)
    paths = {file.path for file in state.files if file.table == MESSAGE_BODIES.name}
    commit_derived(lake, LakeSettings(), lambda _state: Derivation([], frozenset(paths)))
    return len(paths)


def test_bodies_are_those_of_the_decoder(demo_lake: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(demo_lake, lake)
    before = ask(lake, "from message_bodies order by all")
    assert before
    assert leave_out_bodies(lake)
    done = run("rebuild", "bodies", "--lake", lake)
    assert done.exit_code == 0, done.output
    after = ask(lake, "from message_bodies order by all")
    assert after == before
    number = read_state(lake).number
    again = run("rebuild", "bodies", "--lake", lake)
    assert again.exit_code == 0
    everything = run("rebuild", "bodies", "--lake", lake, "--all")
    assert everything.exit_code == 0
    assert read_state(lake).number == number
    rows = ask(
        lake,
        "select kind, body, decoded_opcode, decoded from decoded_messages where body is not null",
    )
    assert len({row[2] for row in rows}) > 3
    for kind, body, name, decoded in rows:
        wanted = decode_message_body(body, external_in=kind == "ext_in")
        assert (name, decoded) == (wanted.own_name, wanted.json)
    counts = "select (select count(*) from decoded_messages), (select count(*) from messages)"
    ((decoded, messages),) = ask(lake, counts)
    assert decoded == messages
    before = ask(lake, "from decoded_messages order by all")
    compact_lake(lake, LakeSettings())
    assert ask(lake, "from decoded_messages order by all") == before
    assert not verify_lake(lake).damage
