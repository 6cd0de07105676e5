# SPDX-License-Identifier: Apache-2.0
"""Verifiers of the settings judge the changes of a running gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException

from tests.support.load.kills import Killable
from tests.support.stack.approval_site import Site
from tests.support.stack.world import SCHEMA, error_of, unique

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


def _guard(**settings: str) -> dict[str, str]:
    """Return the settings of a verifier that protects the column `word`."""
    whole = {"KIND": "columns", "PROTECTED_COLUMNS": "word", **settings}
    return {f"VERIFIERS__GUARD__{name}": value for name, value in whole.items()}


def test_change_is_held_until_its_approval(stopped_gateway: Killable) -> None:
    with stopped_gateway.serving(**_guard(ON_VIOLATION="pending")) as world:
        site, ns = Site(world, Path("unused")), world.namespace()
        catalog = site.pyiceberg(world.bob)
        name = world.table(ns, by=world.bob).name

        def drop_column() -> None:
            with catalog.load_table(f"{ns}.{name}").update_schema(allow_incompatible_changes=True) as update:
                update.delete_column("word")

        with pytest.raises(CommitFailedException, match="ChangePending.*guard: "):
            drop_column()
        site.approve(site.only(f"{ns}.{name}"))
        drop_column()
        assert catalog.load_table(f"{ns}.{name}").schema().column_names == ["id"]


def test_registration_over_a_table_is_judged_as_a_commit(stopped_gateway: Killable) -> None:
    with stopped_gateway.serving(**_guard()) as world:
        ns = world.namespace()
        table = world.table(ns)
        second = {"schema-id": 1, "type": "struct", "fields": SCHEMA["fields"][:1]}
        other = world.table(ns, schema=second)
        body = {"name": table.name, "metadata-location": other.answer["metadata-location"], "overwrite": True}
        assert world.admin.post(f"{other.path}/unregister").status_code == 200
        refused = world.admin.post(f"{world.root}/namespaces/{ns}/register", body)
        assert (refused.status_code, error_of(refused)["type"]) == (403, "ChangeRejected"), refused.text
        assert "guard: protected column word" in error_of(refused)["message"]
        same = {**body, "name": unique("t"), "overwrite": False}
        assert world.admin.post(f"{world.root}/namespaces/{ns}/register", same).status_code == 200
