"""Pages for people and the OpenAPI document: complete, valid, and without foreign resources."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from litestar.testing import TestClient
from openapi_spec_validator import validate

from tonlake.api.openapi import load_parameters
from tonlake.api.request.call import converters_of
from tonlake.api.settings import HttpSettings
from tonlake.api.v2.routes import METHODS
from tonlake.api.v3.page.operation import DEFAULT_LIMIT
from tonlake.api.v3.routes import described as described_routes

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
    for route in described_routes:
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
        success = described["paths"][f"/api/v3/{path}"]["get"]["responses"]["200"]
        assert list(success["content"]) == ["application/json"], "what generated clients read"
        listed = [*success["content"], *success.get("x-table-media-types", [])]
        assert len(listed) == forms
        for media in listed:
            answer = client.get(f"/api/v3/{path}?limit=1", headers={"Accept": media})
            assert answer.headers["content-type"].startswith(media)


def test_what_is_for_tests_of_clients_is_not_listed(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    for name in ("__testMethod", "index.html", "doc.json"):
        assert client.get(f"/api/v3/{name}", follow_redirects=False).status_code in (200, 301)
        assert f"/api/v3/{name}" not in described["paths"]


def test_streams_sql_and_monitoring_are_described(described: dict[str, Any]) -> None:
    wanted = {
        *("/api/streaming/v2/sse", "/api/streaming/v2/ws", "/sql"),
        *("/healthz", "/readyz", "/version", "/metrics"),
    }
    assert wanted <= described["paths"].keys()
    answers = described["paths"]["/api/streaming/v2/sse"]["get"]["responses"]
    assert list(answers["200"]["content"]) == ["text/event-stream"]


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a document."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from _walk(each)


def test_every_array_names_its_items(described: dict[str, Any]) -> None:
    arrays = [each for each in _walk(described) if each.get("type") == "array"]
    assert len(arrays) > 100
    assert all("items" in each or "prefixItems" in each for each in arrays)


def _list_parameters(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in described["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if "$ref" not in parameter:
                    yield path, parameter
    for parameter in described["components"]["parameters"].values():
        yield "", parameter


def test_every_parameter_has_a_description_and_an_example(described: dict[str, Any]) -> None:
    listed = list(_list_parameters(described))
    assert len(listed) > 300
    for path, parameter in listed:
        assert parameter["description"].endswith("."), (path, parameter["name"])
        (example,) = parameter["schema"]["examples"]
        jsonschema.validate(example, parameter["schema"])
        # Beside the schema of an optional one it would be filled in by the page.
        assert ("example" in parameter) is parameter.get("required", False)


def test_examples_are_read_by_the_program(described: dict[str, Any]) -> None:
    kinds = {
        f"/api/v3{path}": route.opt.get("query")
        for route in described_routes
        for path in route.paths
    } | {f"/api/v2/{name}": method.params for name, method in METHODS.items()}
    read = 0
    for path, parameter in _list_parameters(described):
        if kinds.get(path) is not None:
            converter = converters_of(kinds[path])[parameter["name"]]
            (example,) = parameter["schema"]["examples"]
            for each in example if converter.many else [example]:
                converter.parse(each if converter.raw or isinstance(each, str) else str(each))
                read += 1
    assert read > 300


def test_requirements_and_limits_of_version_3(
    described: dict[str, Any], client: TestClient[Any]
) -> None:
    either = {  # one of several parameters is required
        *("balanceChanges", "dns/records", "multisig/orders", "multisig/wallets", "vesting"),
        *("pendingActions", "pendingTraces", "pendingTransactions", "transactionsByMessage"),
    }
    refused, start = set(), "/api/v3/"
    for path, item in described["paths"].items():
        if path.startswith(start) and "get" in item and client.get(path).status_code in (401, 422):
            refused.add(path.removeprefix(start))
    listed = [each for each in _list_parameters(described) if each[0].startswith(start)]
    required = {path.removeprefix(start) for path, each in listed if each["required"]}
    assert required == refused - either
    texts = [each["description"] for _, each in listed if each["name"] == "limit"]
    assert len(texts) > 10
    limits = f"default: {DEFAULT_LIMIT}. A server refuses more than {HttpSettings().max_limit} "
    assert all(limits in text for text in texts)


def test_the_table_of_parameters_has_none_too_many(described: dict[str, Any]) -> None:
    used = {(path, parameter["name"]) for path, parameter in _list_parameters(described)}
    for path, item in described["paths"].items():
        for operation in item.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                schema = media["schema"]
                if "$ref" in schema:
                    name = schema["$ref"].rpartition("/")[2]
                    schema = described["components"]["schemas"][name]
                used |= {(path, name) for name in schema.get("properties", ())}
    for name, place in load_parameters():
        assert any(known == name and path.startswith(place) for path, known in used), (
            f"{name}@{place}"
        )


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
                described_there = {"description": given["description"]}
                assert body["properties"][given["name"]] == given["schema"] | described_there
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_reference_follows_the_theme_and_leads_back(
    client: TestClient[Any], theme: str
) -> None:
    page = client.get("/docs", headers={"Cookie": f"tonlake_theme={theme}"}).text
    assert f'data-theme="{theme}"' in page
    assert 'name="viewport"' in page
    assert '<a href="/">tonlake</a>' in page
    assert 'data-theme="auto"' in client.get("/docs").text
    assert "prefers-color-scheme: dark" in client.get("/explorer/docs.css").text


def test_every_group_is_described(described: dict[str, Any]) -> None:
    used = {
        tag
        for item in described["paths"].values()
        for verb, operation in item.items()
        if verb in {"get", "post"}
        for tag in operation["tags"]
    }
    assert used == {tag["name"] for tag in described["tags"] if tag["description"]}
