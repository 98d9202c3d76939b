"""The stages: their order satisfies their declarations, and each gets only declared tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.ingest.derive.stages import STAGES, Stage, derive_in_order
from tonlake.lake.log.place import Derivation, NewFile, Place
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import BASE_TABLES, TABLES

if TYPE_CHECKING:
    from tonlake.ingest.derive.stages import Step

BASE = {table.name for table in BASE_TABLES}
PLACE = Place(1, 2, "2026-01-01")


def test_every_input_is_a_base_table_or_written_by_an_earlier_stage() -> None:
    known = set(BASE)
    for stage in STAGES:
        assert stage.reads <= known, stage.name
        assert not stage.writes & known, stage.name
        known |= stage.writes


def test_a_stage_sees_its_inputs_alone_in_the_order_of_the_list() -> None:
    seen: list[tuple[str, set[str]]] = []

    def make_step(stage: Stage) -> "Step":
        def step(
            _state: LogState,
            rows: Mapping[str, pa.Table],
            place: Place,
            earlier: Sequence[NewFile] = (),
        ) -> Derivation:
            seen.append((stage.name, {*rows, *(file.table for file in earlier)}))
            files = [NewFile(name, place, TABLES[name].empty) for name in sorted(stage.writes)]
            return Derivation(files, frozenset({stage.name}))

        return step

    steps = {stage.name: make_step(stage) for stage in reversed(STAGES)}
    rows = {name: TABLES[name].empty for name in BASE}
    made = [*derive_in_order(steps)(LogState(), rows, PLACE)]
    assert seen == [(stage.name, set(stage.reads)) for stage in STAGES]
    for stage, derived in zip(STAGES, made, strict=True):
        assert derived.removed == {stage.name}
        assert {file.table for file in derived.files} == stage.writes
