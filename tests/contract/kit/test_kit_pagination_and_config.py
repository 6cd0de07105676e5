# SPDX-License-Identifier: Apache-2.0
"""The configuration request and paginated lists, as the compatibility kit and the Java client expect them."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.support.stack.java_client import JavaCatalog, raises
from tests.support.stack.java_errors import BadRequestException, Kind, NoSuchWarehouseException, NotAuthorizedException
from tests.support.stack.world import World

pytestmark = pytest.mark.generated  # the kit enumerates the protocol

_NS, _TABLE, _VIEW = "/v1/{prefix}/namespaces/{namespace}", "/tables/{table}", "/views/{view}"

_WITHOUT_CONFIGURATION = {
    "GET /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces",
    f"GET {_NS}",
    f"DELETE {_NS}",
    f"POST {_NS}/properties",
    f"GET {_NS}/tables",
    f"POST {_NS}/tables",
    f"GET {_NS}{_TABLE}",
    f"POST {_NS}{_TABLE}",
    f"DELETE {_NS}{_TABLE}",
    f"POST {_NS}/register",
    f"POST {_NS}{_TABLE}/metrics",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
}
"""The fourteen endpoints that clients assume if a server lists none."""

_ONLY_IF_CONFIGURED = {
    f"HEAD {_NS}",
    f"HEAD {_NS}{_TABLE}",
    f"GET {_NS}{_TABLE}/credentials",
    f"POST {_NS}{_TABLE}/unregister",
    f"GET {_NS}/views",
    f"POST {_NS}/views",
    *(f"{method} {_NS}{_VIEW}" for method in ("GET", "HEAD", "POST", "DELETE")),
    f"POST {_NS}/register-view",
    "POST /v1/{prefix}/views/rename",
}
"""Endpoints that clients omit, or emulate with whole loads, unless the server lists them."""


def test_every_endpoint_is_advertised_in_its_standard_spelling(catalog: JavaCatalog, world: World) -> None:
    answer = catalog.send(Kind.CONFIG, "GET", f"/catalog/v1/config?warehouse={world.ready.warehouse}").json()
    assert set(answer["endpoints"]) >= _WITHOUT_CONFIGURATION | _ONLY_IF_CONFIGURED
    assert len(answer["endpoints"]) == len(set(answer["endpoints"]))
    assert answer["defaults"]["prefix"] == world.warehouse
    assert not {"token", "credential"} & {*answer["defaults"], *answer["overrides"]}


@pytest.mark.parametrize("name", ["no_such_warehouse", "00000000-0000-0000-0000-000000000000", "a/b"])
def test_missing_warehouse_is_reported_as_missing(catalog: JavaCatalog, name: str) -> None:
    with raises(NoSuchWarehouseException, starts="Warehouse does not exist: "):
        catalog.send(Kind.CONFIG, "GET", "/catalog/v1/config", params={"warehouse": name})


def test_error_names_a_missing_warehouse_or_token(catalog: JavaCatalog, world: World) -> None:
    with raises(BadRequestException, contains="warehouse"):
        catalog.send(Kind.CONFIG, "GET", "/catalog/v1/config")
    with raises(NotAuthorizedException):
        JavaCatalog(world, world.unauthenticated).send(
            Kind.CONFIG, "GET", f"/catalog/v1/config?warehouse={world.warehouse}"
        )
    with raises(NotAuthorizedException):
        JavaCatalog(world, world.unauthenticated).list_namespaces()


# ---- pages -----------------------------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", ["namespaces", "tables", "views"])


def _make(catalog: JavaCatalog, kind: str, ns: str, name: str) -> None:
    if kind == "namespaces":
        catalog.create_namespace(ns, name)
    elif kind == "tables":
        catalog.create_table(ns, name)
    else:
        catalog.create_view(ns, name)


def _page(catalog: JavaCatalog, kind: str, ns: str, **query: str) -> tuple[list[str], str | None]:
    """Return the names of one page, and the token of the next."""
    if kind == "namespaces":
        path, query = f"{catalog.root}/namespaces", {"parent": ns, **query}
    else:
        path = catalog.path(kind, [ns])
    answer = catalog.send(Kind.NAMESPACE, "GET", path, params=query).json()
    assert "next-page-token" in answer, "the last page must contain next-page-token"
    if kind == "namespaces":
        return [levels[-1] for levels in answer["namespaces"]], answer["next-page-token"]
    return [each["name"] for each in answer["identifiers"]], answer["next-page-token"]


@KINDS
def test_list_without_page_size_returns_everything_at_once(catalog: JavaCatalog, ns: str, kind: str) -> None:
    names = [f"x{number}" for number in range(5)]
    for name in names:
        _make(catalog, kind, ns, name)
    assert _page(catalog, kind, ns) == (names, None)
    assert _page(catalog, kind, ns, pageToken="", pageSize="5") == (names, None)


@KINDS
def test_pages_list_every_name_once_and_end_despite_concurrent_changes(
    catalog: JavaCatalog, ns: str, kind: str
) -> None:
    for number in range(0, 10, 2):
        _make(catalog, kind, ns, f"x{number}")
    first, token = _page(catalog, kind, ns, pageToken="", pageSize="2")
    assert (first, token is None) == (["x0", "x2"], False)
    for late in ("x1", "x5"):
        _make(catalog, kind, ns, late)
    _ = catalog.drop_namespace(ns, "x2") if kind == "namespaces" else catalog.drop(kind, ns, "x2")
    seen = first
    while token is not None:
        page, token = _page(catalog, kind, ns, pageToken=token, pageSize="2")
        assert 1 <= len(page) <= 2
        seen += page
    assert seen == ["x0", "x2", "x4", "x5", "x6", "x8"]


@KINDS
def test_empty_list_is_one_empty_page(catalog: JavaCatalog, ns: str, kind: str) -> None:
    assert _page(catalog, kind, ns) == ([], None)
    assert _page(catalog, kind, ns, pageToken="", pageSize="2") == ([], None)


@KINDS
def test_requested_ids_are_listed_in_the_order_of_the_names(catalog: JavaCatalog, ns: str, kind: str) -> None:
    for number in range(3):
        _make(catalog, kind, ns, f"x{number}")
    path = f"{catalog.root}/namespaces" if kind == "namespaces" else catalog.path(kind, [ns])
    query = {"parent": ns, "returnUuids": "true", "pageToken": "", "pageSize": "2"}
    answer = catalog.send(Kind.NAMESPACE, "GET", path, params=query).json()
    ids = answer["namespace-uuids" if kind == "namespaces" else "table-uuids"]
    assert len({str(UUID(id)) for id in ids}) == 2


@pytest.mark.parametrize("size", ["0", "-1", "two", "1.5", ""])
def test_invalid_page_size_is_refused(catalog: JavaCatalog, ns: str, size: str) -> None:
    with raises(BadRequestException):
        _page(catalog, "tables", ns, pageToken="", pageSize=size)
