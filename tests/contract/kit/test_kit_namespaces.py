# SPDX-License-Identifier: Apache-2.0
"""Namespaces as the protocol's compatibility kit expects them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.stack.java_client import JavaCatalog, raises
from tests.support.stack.java_errors import (
    AlreadyExistsException,
    BadRequestException,
    ForbiddenException,
    NamespaceNotEmptyException,
    NoSuchNamespaceException,
    RESTException,
)
from tests.support.stack.world import World, unique

pytestmark = pytest.mark.generated  # the kit enumerates the protocol

GONE = "newdb_gone"


def test_a_new_namespace_exists_and_is_listed_at_once(catalog: JavaCatalog) -> None:
    name = unique("newdb")
    assert not catalog.namespace_exists(name)
    assert catalog.create_namespace(name)["namespace"] == [name]
    assert catalog.namespace_exists(name)
    assert (name,) in catalog.list_namespaces()


def test_existing_namespace_is_not_created_again(catalog: JavaCatalog, ns: str) -> None:
    for name in (ns, ns.upper()):
        with raises(AlreadyExistsException, starts="Namespace already exists"):
            catalog.create_namespace(name)


def test_namespace_load_returns_its_creation_properties(catalog: JavaCatalog) -> None:
    name = unique("newdb")
    catalog.create_namespace(name, prop="val", empty="")
    assert catalog.load_namespace(name).items() >= {"prop": "val", "empty": ""}.items()


@pytest.mark.parametrize(
    ("send", "text"),
    [
        (lambda catalog: catalog.load_namespace(GONE), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.change_namespace(GONE, test="value"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.change_namespace(GONE, removals=["a"]), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.list("tables", GONE), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.list("views", GONE), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.list_namespaces("non-existing"), "Namespace does not exist: non-existing"),
        (lambda catalog: catalog.create_table(GONE, "t"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.stage(GONE, "t"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.create_view(GONE, "v"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.register("tables", GONE, "t", "s3://b/x"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.register("views", GONE, "v", "s3://b/x"), f"Namespace does not exist: {GONE}"),
        (lambda catalog: catalog.create_namespace(GONE, "child"), f"Namespace does not exist: {GONE}"),
    ],
    ids=[
        "load", "set", "remove", "list tables", "list views", "list children", "create table", "stage table",
        "create view", "register table", "register view", "create child",
    ],
)  # fmt: skip
def test_every_operation_on_a_missing_namespace_is_not_found(
    catalog: JavaCatalog, send: Callable[[JavaCatalog], object], text: str
) -> None:
    with raises(NoSuchNamespaceException, is_=text):
        send(catalog)


def test_properties_are_set_updated_and_kept(catalog: JavaCatalog) -> None:
    name = unique("newdb")
    catalog.create_namespace(name, a="1")
    assert catalog.change_namespace(name, test="value")["updated"] == ["test"]
    assert catalog.load_namespace(name).items() >= {"a": "1", "test": "value"}.items()
    answer = catalog.change_namespace(name, a="2", b="3")
    assert (answer["updated"], answer["removed"]) == (["a", "b"], [])
    assert catalog.load_namespace(name).items() >= {"a": "2", "b": "3", "test": "value"}.items()


def test_removed_and_missing_properties_are_reported(catalog: JavaCatalog) -> None:
    name = unique("newdb")
    catalog.create_namespace(name, a="1", b="2")
    answer = catalog.change_namespace(name, removals=["a", "zzz"], c="3")
    assert answer == {"updated": ["c"], "removed": ["a"], "missing": ["zzz"]}
    kept = catalog.load_namespace(name)
    assert "a" not in kept
    assert (kept["b"], kept["c"]) == ("2", "3")


def test_one_key_cannot_be_set_and_removed_at_once(catalog: JavaCatalog, ns: str) -> None:
    with raises(RESTException, contains="set and removed"):
        catalog.change_namespace(ns, removals=["k"], k="v")


def test_dropped_namespace_is_gone_and_a_repeated_drop_returns_false(catalog: JavaCatalog, ns: str) -> None:
    assert catalog.drop_namespace(ns)
    assert not catalog.namespace_exists(ns)
    assert (ns,) not in catalog.list_namespaces()
    assert not catalog.drop_namespace(ns)
    catalog.create_namespace(ns)


@pytest.mark.parametrize(
    ("fill", "clear"),
    [
        (lambda c, ns: c.create_table(ns, "x"), lambda c, ns: c.drop("tables", ns, "x")),
        (lambda c, ns: c.create_view(ns, "x"), lambda c, ns: c.drop("views", ns, "x")),
        (lambda c, ns: c.create_namespace(ns, "x"), lambda c, ns: c.drop_namespace(ns, "x")),
    ],
    ids=["a table", "only a view", "a nested namespace"],
)
def test_non_empty_namespace_is_not_dropped(
    catalog: JavaCatalog,
    ns: str,
    fill: Callable[[JavaCatalog, str], object],
    clear: Callable[[JavaCatalog, str], object],
) -> None:
    fill(catalog, ns)
    with raises(NamespaceNotEmptyException, contains="is not empty"):
        catalog.drop_namespace(ns)
    assert clear(catalog, ns)
    assert catalog.drop_namespace(ns)


def test_nested_namespaces_are_listed_one_level_at_a_time(catalog: JavaCatalog, ns: str) -> None:
    for levels in (["a"], ["b"], ["a", "c"]):
        catalog.create_namespace(ns, *levels)
    assert catalog.list_namespaces(ns) == [(ns, "a"), (ns, "b")]
    assert catalog.list_namespaces(ns, "a") == [(ns, "a", "c")]
    assert catalog.list_namespaces(ns, "b") == []
    assert (ns, "a") not in catalog.list_namespaces()


@pytest.mark.parametrize("level", ["two words", "100% sure", "tab\u00adle", "ünï", "a&b=c", "a,b;c:d", "~", "😀"])
def test_names_in_java_encoding_are_found(catalog: JavaCatalog, ns: str, level: str) -> None:
    catalog.create_namespace(ns, level)
    assert catalog.namespace_exists(ns, level)
    assert catalog.list_namespaces(ns) == [(ns, level)]
    assert catalog.drop_namespace(ns, level)


@pytest.mark.parametrize("levels", [["a.b"], ["a/b"], ["a+b"], ["a\\b"], [""], [" a"], ["a%41"]], ids=str)
def test_ambiguously_splittable_namespace_names_are_refused(catalog: JavaCatalog, ns: str, levels: list[str]) -> None:
    """The kit omits dots and slashes for catalogs that declare it; see `docs/protocol.md`."""
    for path in (levels, [ns, *levels]):
        with raises(BadRequestException):
            catalog.create_namespace(*path)


def test_empty_namespace_name_is_refused(catalog: JavaCatalog) -> None:
    with raises(BadRequestException):
        catalog.create_namespace()


@pytest.mark.parametrize("name", ["system", "SYSTEM", "examples", "information_schema"])
def test_engine_names_are_reserved_at_the_top_level_only(catalog: JavaCatalog, ns: str, name: str) -> None:
    with raises(BadRequestException, starts="Namespace is reserved"):
        catalog.create_namespace(name)
    catalog.create_namespace(ns, name)


def test_missing_right_on_a_visible_namespace_is_forbidden(world: World, ns: str) -> None:
    """A caller that sees the namespace gets 403; any other gets the kit's response for a missing namespace."""
    world.grant("describe", world.steward, "namespace", world.namespace_id(ns))
    with raises(ForbiddenException):
        JavaCatalog(world, world.steward).drop_namespace(ns)
    assert not JavaCatalog(world, world.carol).drop_namespace(ns)
    assert JavaCatalog(world).namespace_exists(ns)
