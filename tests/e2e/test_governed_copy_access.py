# SPDX-License-Identifier: Apache-2.0
"""Governed copies whose reader may not read the source any more, and those whose service may not."""

from __future__ import annotations

import pytest

from lakegate.spark.errors import GovernedReadRefused, ReaderLostAccess
from tests.support.engines.governed_site import MASKED, Site, site
from tests.support.stack.columns import give, take
from tests.support.stack.world import unique

__all__ = ["site"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def rename(site: Site, old: str, new: str) -> None:
    def identifier(name: str) -> dict[str, object]:
        return {"namespace": [site.namespace], "name": name}

    body = {"source": identifier(old), "destination": identifier(new)}
    assert site.world.admin.post(f"{site.world.root}/tables/rename", body).status_code == 204


def test_a_copy_is_emptied_when_the_user_loses_access_and_filled_again_with_it(site: Site) -> None:
    target = unique("copy")
    site.copy(target)
    assert take(site.world, site.table, "name", site.world.carol).status_code == 204
    for _ in range(2):
        with pytest.raises(ReaderLostAccess, match="now empty"):
            site.copy(target)
        assert site.copied(target) == []
        assert len(site.snapshots(target)) == 1
    assert give(site.world, site.table, "name", site.world.carol).status_code == 204
    assert site.copy(target).change == "rewrite"
    assert site.copied(target) == MASKED


def test_a_copy_is_emptied_when_the_source_is_renamed(site: Site) -> None:
    target = unique("copy")
    site.copy(target)
    rename(site, site.table.name, moved := unique("t"))
    try:
        with pytest.raises(ReaderLostAccess, match="now empty"):
            site.copy(target)
    finally:
        rename(site, moved, site.table.name)
    assert site.copied(target) == []


def test_a_copy_keeps_its_rows_if_the_configuration_says_so(site: Site) -> None:
    target = unique("copy")
    site.copy(target)
    assert take(site.world, site.table, "name", site.world.carol).status_code == 204
    with pytest.raises(ReaderLostAccess, match="keeps its rows"):
        site.copy(target, on_lost_access="keep")
    assert site.copied(target) == MASKED


@pytest.mark.parametrize("privilege", ["enforcer", "delegate"])
def test_a_copy_is_unchanged_when_the_service_loses_its_rights(site: Site, privilege: str) -> None:
    target = unique("copy")
    site.copy(target)
    site.world.revoke(privilege, site.world.etl, "warehouse", site.world.warehouse)
    with pytest.raises(GovernedReadRefused):
        site.copy(target)
    assert site.copied(target) == MASKED


def test_no_other_table_is_emptied(site: Site) -> None:
    other = site.world.table(site.namespace)
    site.world.grant("modify", site.world.etl, "table", other.uuid)
    assert take(site.world, site.table, "name", site.world.carol).status_code == 204
    with pytest.raises(GovernedReadRefused, match="not created by this service"):
        site.copy(other.name)
    with pytest.raises(ReaderLostAccess, match="not created"):
        site.copy(unique("copy"))
