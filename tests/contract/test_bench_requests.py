# SPDX-License-Identifier: Apache-2.0
"""The requests that compare catalogs: any catalog gets its data by the protocol alone, and loses it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.bench import catalogs
from tests.bench.catalogs import Catalog, CatalogError, Prepared
from tests.support.stack.world import World

pytestmark = pytest.mark.generated

Prepare = Callable[..., Prepared]


@pytest.fixture
def prepare(world: World) -> Iterator[Prepare]:
    """Yield a function that prepares the stack's catalog for the administrator. Its arguments change the catalog."""
    made: list[Prepared] = []

    def prepared(**changed: str | None) -> Prepared:
        described: dict[str, str | None] = {"token": world.admin.token, "warehouse": world.ready.warehouse, **changed}
        url = described.pop("url", None) or world.ready.catalog_uri
        made.append(Prepared(Catalog(name="the peer", url=url, **described)))
        return made[-1]

    yield prepared
    for each in made:
        each.close()


def test_every_request_is_answered_and_leaves_nothing_behind(world: World, prepare: Prepare) -> None:
    before = world.admin.get(f"{world.root}/namespaces").json()["namespaces"]
    prepared = prepare()
    names = [name for name in catalogs.NAMES if name != catalogs.LIST_1000]

    sent = prepared.requests(names)
    refusals = {name: prepared.refusal(name, sent[name]) for name in names}
    listed = prepared.client.get(sent[catalogs.LIST_100].url).json()["identifiers"]

    assert refusals == dict.fromkeys(names)
    assert len(listed) == 100
    assert prepared.remove() == []
    assert world.admin.get(f"{world.root}/namespaces").json()["namespaces"] == before


def test_data_of_a_request_is_created_once(prepare: Prepare) -> None:
    prepared = prepare()

    first, second = (prepared.requests([name])[name] for name in (catalogs.LOAD, catalogs.EXISTS))

    assert first.url == second.url
    assert prepared.remove() == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token": None}, r"needs a token \(401\): give a valid one with TARGET_TOKEN"),
        ({"token": "wrong"}, r"refuses the token \(401\): give a valid one with TARGET_TOKEN"),
        ({"warehouse": None}, "name one with TARGET_WAREHOUSE"),
        ({"warehouse": "missing"}, "is 'missing' the name of a warehouse"),
        ({"url": "http://127.0.0.1:9/catalog"}, "no catalog answers at http://127.0.0.1:9/catalog/v1/config"),
    ],
)
def test_catalog_that_cannot_be_measured_is_refused_with_the_remedy(
    prepare: Prepare, changed: dict[str, str | None], message: str
) -> None:
    with pytest.raises(CatalogError, match=message):
        prepare(**changed)


def test_table_without_credentials_is_not_measured_as_vended(prepare: Prepare) -> None:
    prepared = prepare()
    plain = prepared.requests([catalogs.LOAD])[catalogs.LOAD]

    assert prepared.refusal(catalogs.LOAD, plain) is None
    assert prepared.refusal(catalogs.VENDED, plain) == "a table without storage credentials"
    assert prepared.remove() == []
