# SPDX-License-Identifier: Apache-2.0
"""Engines get their tokens from the identity provider of the stack with a client id and a secret."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from tests.support.engines.spark import Session, Spark
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def credential(world: World) -> str:
    """Return the credential of the administrator in the form of the Iceberg clients."""
    user = world.ready.users["admin"]
    return f"{user.client_id}:{user.client_secret}"


def test_pyiceberg_logs_in_with_its_credential(world: World, ns: str) -> None:
    where: dict[str, Any] = {"type": "rest", "uri": world.ready.catalog_uri, "warehouse": world.ready.warehouse}
    user = world.ready.users["admin"]
    oauth2 = {
        "client_id": user.client_id,
        "client_secret": user.client_secret,
        "token_url": world.ready.token_endpoint,
    }
    posted = {"credential": credential(world), "oauth2-server-uri": world.ready.token_endpoint}
    for login in (posted, {"auth": {"type": "oauth2", "oauth2": oauth2}}):
        assert (ns,) in load_catalog("lake", **where, **login).list_namespaces()


def test_spark_logs_in_with_its_credential(world: World, spark: Spark) -> None:
    # The namespace belongs to the client, so the token was the administrator's.
    name = unique("by_credential")
    session = Session(spark, world.admin, credential=(credential(world), world.ready.token_endpoint))
    session.sql(f"CREATE NAMESPACE lake.{name}")
    session.sql(f"CREATE TABLE lake.{name}.t (id bigint) USING iceberg")
    session.sql(f"INSERT INTO lake.{name}.t VALUES (1)")
    assert session.value(f"SELECT count(*) FROM lake.{name}.t") == 1
