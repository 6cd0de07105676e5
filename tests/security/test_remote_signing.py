# SPDX-License-Identifier: Apache-2.0
"""Signed requests reach the files of their table and nothing else, on the real object store."""

from __future__ import annotations

import pytest

from tests.contract.remote_signing import SignedTable
from tests.contract.world import World


@pytest.fixture
def signed(world: World, ns: str) -> SignedTable:
    return SignedTable(world, world.warehouse, world.table(ns))


def test_signed_requests_read_write_list_and_delete(signed: SignedTable) -> None:
    admin = signed.world.admin
    written = signed.sign(admin, "PUT", signed.uri("data/a b+c.parquet".replace(" ", "%20").replace("+", "%2B")))
    assert written.send(b"rows").status_code == 200
    uri = signed.uri("data/a%20b%2Bc.parquet")
    assert signed.sign(admin, "GET", uri).send().content == b"rows"
    assert signed.sign(admin, "HEAD", uri).send().headers["content-length"] == "4"
    listed = signed.sign(admin, "GET", signed.list_uri()).send()
    assert "data/a b+c.parquet" in listed.text
    assert signed.sign(admin, "DELETE", uri).send().status_code == 204
    assert signed.sign(admin, "GET", uri).send().status_code == 404
