# SPDX-License-Identifier: Apache-2.0
"""Spark options: those of the engine appear on a command line, those of the catalog contain secrets."""

from __future__ import annotations

import pytest

from lakegate.spark.config import DirectoryCatalog, Engine, RestCatalog
from lakegate.spark.session import CATALOG, catalog_options, engine_options

ENGINE = Engine(jars=[], work_dir="/nowhere")
BEARER = RestCatalog(uri="http://c/catalog", warehouse="w", token="tok-3f9a")
CLIENT = RestCatalog(uri="http://c/catalog", warehouse="w", credential="id:sec", token_endpoint="http://i/t", scope="s")


def test_engine_options_contain_no_catalog_and_no_identity() -> None:
    assert not [
        name for name in engine_options(ENGINE) if "catalog." in name or "token" in name or "credential" in name
    ]


@pytest.mark.parametrize("name", ["spark.driver.host", "spark.driver.bindAddress"])
def test_the_engine_listens_on_loopback_only(name: str) -> None:
    assert engine_options(ENGINE)[name] == "127.0.0.1"


@pytest.mark.parametrize("catalog", [BEARER, CLIENT])
def test_catalog_options_contain_no_store_settings(catalog: RestCatalog) -> None:
    names = [name.removeprefix(f"spark.sql.catalog.{CATALOG}.") for name in catalog_options(catalog)]
    assert not [name for name in names if name.startswith(("s3.", "io-impl", "client."))]
    assert "header.X-Iceberg-Access-Delegation" in names


def test_a_plain_token_is_not_refreshed_at_the_catalog() -> None:
    options = catalog_options(BEARER)
    assert options[f"spark.sql.catalog.{CATALOG}.token"] == "tok-3f9a"
    assert options[f"spark.sql.catalog.{CATALOG}.token-refresh-enabled"] == "false"


def test_client_credentials_are_sent_to_the_configured_token_endpoint() -> None:
    options = catalog_options(CLIENT)
    assert options[f"spark.sql.catalog.{CATALOG}.credential"] == "id:sec"
    assert options[f"spark.sql.catalog.{CATALOG}.oauth2-server-uri"] == "http://i/t"
    assert options[f"spark.sql.catalog.{CATALOG}.scope"] == "s"
    assert f"spark.sql.catalog.{CATALOG}.token" not in options


def test_a_directory_needs_no_identity() -> None:
    assert catalog_options(DirectoryCatalog(path="/lake"))[f"spark.sql.catalog.{CATALOG}.type"] == "hadoop"


def test_purges_are_executed_by_the_catalog() -> None:
    assert catalog_options(BEARER)[f"spark.sql.catalog.{CATALOG}.rest-catalog-purge"] == "true"
