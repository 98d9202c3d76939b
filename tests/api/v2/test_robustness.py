"""Every request gets an envelope, and never an internal error."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.v2.conftest import Asker
from tonlake.api.request.call import converters_of
from tonlake.api.v2.routes import METHODS

ADDRESS = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
NUMBERS = st.sampled_from([-(1 << 63), -(1 << 31), -1, 0, 1, 5, 238, (1 << 31) - 1, (1 << 63) - 1])
SCALARS = (
    NUMBERS
    | NUMBERS.map(str)
    | st.sampled_from([ADDRESS, "0" * 64, "", "true", "null", -(1 << 64), 1 << 64, 1e300, "1e5"])
    | st.text(max_size=60)
    | st.booleans()
)
ENTRIES = st.tuples(
    st.sampled_from(["num", "cell", "slice", "tuple", "list", "null", "x"]), SCALARS
)
VALUES = (
    SCALARS
    | st.none()
    | st.lists(SCALARS, max_size=3)
    | st.lists(ENTRIES, max_size=3)
    | st.just({"a": 1})
)
WANTED = {
    "address": ADDRESS,
    "source": ADDRESS,
    "destination": ADDRESS,
    "workchain": 0,
    "shard": -(1 << 63),
    "seqno": 100,
    "libraries": ["0" * 64],
    "hash": "0" * 64,
    "created_lt": 5,
    "method": "seqno",
    "stack": [["num", 5], ["tvm.Slice", "te6ccgEBAQEAAgAAAA=="]],
    "boc": "te6ccgEBAQEAAgAAAA==",
    "body": "te6ccgEBAQEAAgAAAA==",
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a method and parameters, most of them right."""
    method = draw(st.sampled_from(sorted(METHODS)))
    names = list(converters_of(METHODS[method].params))
    params: dict[str, Any] = {name: WANTED[name] for name in names if name in WANTED}
    for name in draw(st.lists(st.sampled_from([*names, "x"]), max_size=3)):
        params[name] = draw(VALUES)
    return method, params


@settings(max_examples=150, deadline=None)
@given(requests())
def test_every_answer_is_an_envelope(ask: Asker, request: tuple[str, dict[str, Any]]) -> None:
    method, params = request
    by_post = ask.client.post(f"/api/v2/{method}", json=params)
    by_rpc = ask.rpc(method, params)
    plain = {name: value for name, value in params.items() if not isinstance(value, dict)}
    by_get = ask.raw(method, **plain)
    assert by_post.status_code == by_rpc.status_code
    for answer in (by_post, by_rpc, by_get):
        body = answer.json()
        assert body["ok"] is (answer.status_code == 200)
        assert "@extra" in body
        if not body["ok"]:
            assert body["code"] == answer.status_code
            expected = {404, 409, 422, 500}
            if METHODS[method].post_only:
                expected |= {405} if answer is by_get else {503, 542}
            assert answer.status_code in expected
            assert body["error"] != "internal server error"


def test_text_beyond_ascii_is_no_bag(ask: Asker) -> None:
    for method, names in (
        ("sendBoc", ("boc",)),
        ("sendQuery", ("body", "init_code", "init_data")),
        ("estimateFee", ("body", "init_code", "init_data")),
    ):
        for name in names:
            params = {"address": ADDRESS, "body": WANTED["body"], name: "\u0663"}
            answer = ask.client.post(f"/api/v2/{method}", json=params)
            assert answer.status_code == 422, (method, name, answer.text)
