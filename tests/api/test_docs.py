"""Pages for people, and the description for programs: complete, valid, and from here alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from openapi_spec_validator import validate

from tonlake.api.request.params import converters_of
from tonlake.api.v2.methods import METHODS
from tonlake.api.v3.routes import routes as v3_routes

if TYPE_CHECKING:
    from litestar.testing import TestClient

_LINK = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.fixture(scope="module")
def described(client: TestClient[Any]) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    document: dict[str, Any] = answer.json()
    return document


def test_the_description_is_valid(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1.")
    validate(described)
    named = [
        operation["operationId"]
        for path in described["paths"].values()
        for operation in path.values()
    ]
    assert len(set(named)) == len(named)


def test_every_route_is_described_with_its_parameters(described: dict[str, Any]) -> None:
    for route in v3_routes:
        for path in route.paths:
            item = described["paths"][f"/api/v3{path}"]
            assert {verb.lower() for verb in route.http_methods} - {"head"} <= item.keys()
            kind = route.opt.get("query")
            if kind is not None:
                names = [item.get("name") for item in item["get"]["parameters"]]
                assert names[: len(converters_of(kind))] == list(converters_of(kind))
    for name, method in METHODS.items():
        item = described["paths"][f"/api/v2/{name}"]
        assert ("get" in item, "post" in item) == (not method.post_only, True)
    assert "post" in described["paths"]["/api/v2/jsonRPC"]


def test_lists_are_described_in_every_form(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    """As many forms as the route answers in, no more and no fewer."""
    for path, forms in (("blocks", 4), ("transactions", 4), ("masterchainInfo", 1)):
        content = described["paths"][f"/api/v3/{path}"]["get"]["responses"]["200"]["content"]
        assert len(content) == forms
        for media in content:
            answer = client.get(f"/api/v3/{path}?limit=1", headers={"Accept": media})
            assert answer.headers["content-type"].startswith(media)


def test_what_is_elsewhere_is_described_so(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    for name in ("index.html", "doc.json"):
        described_here = described["paths"][f"/api/v3/{name}"]["get"]
        answer = client.get(f"/api/v3/{name}", follow_redirects=False)
        assert list(described_here["responses"]) == [str(answer.status_code)] == ["301"]
        assert "Location" in described_here["responses"]["301"]["headers"]
        assert "location" in answer.headers


def test_the_description_does_not_allow_zero_where_it_is_refused(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    """Seqnos, limits and counts of version 2, in queries and in bodies."""
    seen = set()
    for path, item in described["paths"].items():
        for given in item.get("get", {}).get("parameters", []):
            if path.startswith("/api/v2/") and given["name"] in ("seqno", "limit", "count"):
                assert given["schema"]["minimum"] == 1, path
                body = item["post"]["requestBody"]["content"]["application/json"]["schema"]
                assert body["properties"][given["name"]] == given["schema"]
                seen.add(given["name"])
    assert seen == {"seqno", "limit", "count"}
    answer = client.get("/api/v2/getConfigAll?seqno=0")
    assert (answer.status_code, "seqno should be positive" in answer.text) == (422, True)
    assert client.get("/api/v2/getConfigAll?seqno=1").status_code != 422


def test_answers_are_those_of_the_structs(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    schema = described["paths"]["/api/v3/masterchainInfo"]["get"]["responses"]["200"]["content"]
    assert schema["application/json"]["schema"] == {"$ref": "#/components/schemas/MasterchainInfo"}
    block = described["components"]["schemas"]["Block"]
    assert client.get("/api/v3/masterchainInfo").json()["last"].keys() == block["properties"].keys()


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_every_link_of_a_page_leads_somewhere_here(client: TestClient[Any], page: str) -> None:
    answer = client.get(page)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "://" not in answer.text
    links = [link for link in _LINK.findall(answer.text) if not link.startswith("data:")]
    assert links
    for link in links:
        found = client.get(link)
        assert (found.status_code, bool(found.content)) == (200, True), link


def test_other_files_of_the_package_are_not_served(client: TestClient[Any]) -> None:
    for name in ("swagger-ui.js", "../templates/doc.html", "index.html"):
        assert client.get(f"/docs/{name}").status_code == 404


def test_the_page_is_protected_as_those_of_the_explorer(client: TestClient[Any]) -> None:
    docs, page = client.get("/docs"), client.get("/")
    policies = [one.headers["Content-Security-Policy"].split("; ") for one in (docs, page)]
    assert set(policies[0]) - set(policies[1]) == {"img-src 'self' data:"}
    assert "frame-ancestors 'none'" in policies[0]
    assert "<script>" not in docs.text
    for name in ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"):
        assert docs.headers[name] == page.headers[name]
