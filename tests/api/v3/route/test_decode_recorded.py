"""``/decode`` of every body whose decoded object is recorded."""

from pathlib import Path
from typing import Any

from tests.ingest.derive.body.recordings import read_messages
from tonlake.api.v3.route.decode import decode_text


def test_every_recorded_typed_body_is_decoded_as_recorded(shared: Path) -> None:
    typed = [m for m in read_messages(shared) if m.decoded and "@type" in m.decoded]
    assert len(typed) > 15
    different = [m.hash for m in typed if decode_text(m.body) != as_decode_shows(m.decoded)]
    assert different == []


def as_decode_shows(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded object as ``/decode`` shows it: text comments as their constructor."""
    if recorded["@type"] == "text_comment":
        return {"@type": "text_comment", "text": recorded["comment"]}
    return recorded
