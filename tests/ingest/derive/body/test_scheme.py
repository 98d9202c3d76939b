"""The shipped table: every layout against the reference, and round trips."""

import csv
import re
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode, read, show
from tests.ingest.derive.body.values import records
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body.codec import Object
from tonlake.ingest.derive.body.grammar import parse_scheme
from tonlake.ingest.derive.body.record import OPCODE_BITS, Union
from tonlake.ingest.derive.body.scheme import Scheme, load_scheme
from tonlake.ingest.errors import BocError, BodyError

LAYOUTS = [
    (opcode, record)
    for opcode, records_of_one in sorted(load_scheme().layouts.items())
    for record in records_of_one
    if not any(part.codec is load_scheme().union("Never") for part in record.parts)
]
TOGETHER = 8  # to begin a property takes longer than to draw a layout three times
FEW = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("start", range(0, len(LAYOUTS), TOGETHER))
def test_every_layout_survives_a_round_trip(start: int) -> None:
    layouts = LAYOUTS[start : start + TOGETHER]
    has_dns = any(record.name == "change_dns_record" for _, record in layouts)

    @settings(FEW, max_examples=30 if has_dns else 3)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        for opcode, record in layouts:
            fields = data.draw(records(record))
            target = CellBuilder().store_uint(opcode, OPCODE_BITS)
            try:
                encode(record, fields, target)
                cell = target.end()
            except BocError:
                continue  # drawn too large for a cell
            source = target.tree.slice(cell)
            source.skip(OPCODE_BITS)
            assert read(record, source) == fields
            assert (source.bits_left, source.refs_left) == (0, 0)
            if len(load_scheme().layouts[opcode]) == 1:
                assert show(target.tree, cell) == (record.name, fields)

    check()


@pytest.mark.parametrize("choice", range(8))
def test_every_wallet_message_survives_a_round_trip(choice: int) -> None:
    union = load_scheme().union("WalletBody")
    record = union.choices[choice].record

    @settings(FEW, max_examples=10)
    @given(records(record, level=1))
    def check(fields: Object) -> None:
        target = CellBuilder()
        try:
            encode(union, fields, target)
            cell = target.end()
        except BocError:
            reject()
        assert read(union, target.tree.slice(cell)) == fields

    check()


NEWER = {"hipo": 14, "dedust": 17, "single": 4, "tg": 1, "new": 1, "": 1}
NEWER |= {"provide": 1, "take": 1, "jetton": 4, "nft": 3}
"""Layouts whose opcodes are newer than the reference table, by the first word of the name."""


def test_the_table_is_that_of_the_reference(shared: Path) -> None:
    with (shared / "reference" / "opcodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected: dict[int, list[str]] = {}
    for row in rows:
        expected.setdefault(int(row["opcode"], 16), []).append(row["constructor"])
    layouts = load_scheme().layouts
    names = {}
    for opcode, found in layouts.items():
        count = len(expected.get(opcode, [""]))
        names[opcode] = [record.name for record in found[:count]]
        assert all(record.is_whole for record in found[count:])
    newer = [names.pop(opcode) for opcode in names.keys() - expected.keys()]
    assert Counter(name.partition("_")[0] for [name] in newer) == NEWER
    assert names == expected
    for row in rows:
        served = layouts[int(row["opcode"], 16)][0].name
        assert served == row["decoded_opcode_served"]


REST_INSTEAD = {
    "dedust_change_operator_user_addr",
    "dedust_deploy_operator",
    "dedust_install_vault_code",
    "moon_deploy_order",
    "storm_change_lazer_data",
    "storm_change_lazer_data_request",
    "storm_take_position_v2",
    "tonkeeper_2fa_signed",
}
"""Layouts with an unpublished nested type before other fields: shown as ``rest``."""

NAMED_SINCE = {
    "highload_v3_internal_request",
    "w5_extension_action_request",
    "w5_external_signed_request",
    "w5_internal_signed_request",
}
"""Layouts that the reference keeps raw, but the public service does not."""


def test_fields_are_those_of_the_reference(shared: Path) -> None:
    with (shared / "reference" / "opcodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    seen, layouts = dict[int, int](), load_scheme().layouts
    for row in rows:
        opcode = int(row["opcode"], 16)
        record = layouts[opcode][seen.get(opcode, 0)]
        seen[opcode] = seen.get(opcode, 0) + 1
        flat = re.sub(r"\^\[[^\]]*\]", "", row["fields_after_opcode"])
        names = ["" if name == "_" else name for name in re.findall(r"(\w+):", flat)]
        ours = [part.name for part in record.parts]
        if record.name in NAMED_SINCE:
            assert names == ["rest"]
        elif record.name == "jetton_mint":
            assert ours == [*names, "master_msg"]
        elif record.name in REST_INSTEAD:
            assert ours[-1] == "rest"
            assert ours[:-1] == names[: len(ours) - 1]
        else:
            groups = row["fields_after_opcode"].count("^[")
            assert len([name for name in ours if name in names]) >= len(ours) - groups, record.name


def test_threads_see_no_type_before_it_is_complete() -> None:
    scheme = load_scheme.__wrapped__()
    with mock.patch.object(Union, "fill", side_effect=AssertionError):
        for name in ("SignedBody", "WalletBody", "TgWalletRequest"):
            assert scheme.union(name).choices


def test_nothing_is_decoded_by_a_layout_that_only_names_its_opcode() -> None:
    name = load_scheme().layouts[1][0].name
    assert name == "evaa_supply_master,pyth_update_guardian_set,w4_deploy_install_plugin"
    tree = CellBuilder().store_uint(1, 32)
    assert show(tree.tree, tree.end()) == (name, None)


def test_a_table_with_an_unknown_type_is_rejected() -> None:
    with pytest.raises(BodyError, match="no type Nowhere"):
        Scheme(parse_scheme("one#00000001 a:Nowhere = InternalBody;"))
    with pytest.raises(BodyError, match="no type Twice"):
        Scheme(parse_scheme("one#00000001 a:(Twice Bool) = InternalBody;"))
    with pytest.raises(BodyError, match="not an earlier number"):
        Scheme(parse_scheme("one#00000001 a:(HashmapE Bool Bool) = InternalBody;"))
    with pytest.raises(BodyError, match="no 32-bit opcode"):
        Scheme(parse_scheme("one#0001 a:Bool = InternalBody;"))
    with pytest.raises(BodyError, match="inside another type"):
        Scheme(parse_scheme("one#00000001 a:Bool b:(Maybe a?Bool) = InternalBody;"))
