# SPDX-License-Identifier: Apache-2.0
"""Misuse of tags: attaching needs both rights, and no answer distinguishes an absent tag or object from an invisible
one.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.columns import give
from tests.support.stack.tags import TAG, attach, define, detach, enumerated, search, shown, tags_path
from tests.support.stack.world import World, error_triple, unique


def test_attaching_needs_both_rights(world: World, ns: str) -> None:
    tag, table = define(world), world.table(ns)
    path = tags_path(world, "table", table.uuid)
    tagger, applier, both = (world.stranger() for _ in range(3))
    for person in (tagger, applier, both):
        world.grant("describe", person, "table", table.uuid)
    for person in (tagger, both):
        world.grant("manage_tags", person, "table", table.uuid)
    for person in (applier, both):
        world.grant("apply", person, "tag", tag["id"])
    # A tag that may not be read is hidden. A visible table is refused.
    assert error_triple(attach(world, tag, path, by=tagger))[:2] == (404, "TagNotFound")
    assert error_triple(attach(world, tag, path, by=applier))[:2] == (403, "TableActionForbidden")
    column = tags_path(world, "table", table.uuid, "word")
    assert attach(world, tag, column, by=tagger).status_code == 404
    assert attach(world, tag, column, by=applier).status_code == 403
    assert shown(world, path) == []
    assert attach(world, tag, path, by=both).status_code == 200
    # Detaching is a right of its own, which applying does not imply.
    for person, code in ((tagger, 404), (applier, 403), (both, 403)):
        assert detach(world, tag, path, by=person).status_code == code
    assert shown(world, path) == [(tag["name"], None)]
    world.grant("remove", both, "tag", tag["id"])
    assert detach(world, tag, path, by=both).status_code == 204


def test_value_of_a_tag_is_changed_by_principals_that_may_remove_it(world: World, ns: str) -> None:
    steward, tag = world.stranger(), define(world, **enumerated("public", "secret"))
    table = world.table(ns)
    path = tags_path(world, "table", table.uuid)
    for privilege, kind, id in (("manage_tags", "table", table.uuid), ("describe", "table", table.uuid)):
        world.grant(privilege, steward, kind, id)
    world.grant("apply", steward, "tag", tag["id"])
    for at in (path, tags_path(world, "table", table.uuid, "word")):
        assert attach(world, tag, at, "secret", by=steward).status_code == 200
        assert attach(world, tag, at, "secret", by=steward).status_code == 200, "the same value changes nothing"
        assert error_triple(attach(world, tag, at, "public", by=steward))[:2] == (403, "TagActionForbidden")
        assert shown(world, at) == [(tag["name"], "secret")]
    world.grant("remove", steward, "tag", tag["id"])
    assert attach(world, tag, path, "public", by=steward).status_code == 200


@pytest.mark.parametrize("depends", ["bound to the tag", "naming it"])
@pytest.mark.parametrize("column", ["", "word"])
def test_tag_that_a_data_policy_depends_on_is_removed_by_principals_that_may_bind_the_policy(
    world: World, ns: str, depends: str, column: str
) -> None:
    """A mask bound to the warehouse by the name of a tag protects no more than the tag does."""
    steward, tag = world.stranger(), define(world, **enumerated("public", "secret"))
    table = world.table(ns)
    path = tags_path(world, "table", table.uuid, column)
    for privilege, kind, id in (("manage_tags", "table", table.uuid), ("describe", "table", table.uuid)):
        world.grant(privilege, steward, kind, id)
    for privilege in ("apply", "remove"):
        world.grant(privilege, steward, "tag", tag["id"])
    assert attach(world, tag, path, "secret").status_code == 200
    names = {"columns": [{"tag": tag["name"].upper()}]} if depends == "naming it" else {}
    body = {"name": unique("policy"), "definition": {"kind": "mask", "action": "replace-with-null", **names}}
    made = world.admin.post("/management/v1/data-policy", body)
    assert made.status_code == 201, made.text
    policy = made.json()["id"]
    if depends == "bound to the tag":
        bound = world.admin.post(
            f"/management/v1/data-policy/{policy}/bindings", {"add": [{"type": "tag", "id": tag["id"]}]}
        )
        assert bound.status_code == 204, bound.text
    before = shown(world, path)
    for answer in (detach(world, tag, path, by=steward), attach(world, tag, path, "public", by=steward)):
        assert error_triple(answer)[:2] == (403, "TagActionForbidden")
        assert "data policy" in answer.json()["error"]["message"]
    assert shown(world, path) == before
    world.grant("ownership", steward, "data-policy", policy)
    assert attach(world, tag, path, "public", by=steward).status_code == 200
    assert detach(world, tag, path, by=steward).status_code == 204
    assert world.admin.delete(f"/management/v1/data-policy/{policy}?force=true").status_code == 204


def test_owner_of_the_table_may_not_remove_its_tags(world: World, ns: str) -> None:
    """Policies may depend on a tag, so the subject of such a policy must not remove it."""
    owner, tag = world.stranger(), define(world)
    table = world.table(ns)
    world.grant("ownership", owner, "table", table.uuid)
    path = tags_path(world, "table", table.uuid)
    assert attach(world, tag, path).status_code == 200
    assert detach(world, tag, path, by=owner).status_code == 404
    world.grant("apply", owner, "tag", tag["id"])
    assert detach(world, tag, path, by=owner).status_code == 403
    assert shown(world, path) == [(tag["name"], None)]


def test_absent_and_invisible_tags_have_the_same_answer(world: World, ns: str) -> None:
    tag, table, stranger = define(world), world.table(ns), world.stranger()
    world.grant("describe", stranger, "table", table.uuid)
    world.grant("manage_tags", stranger, "table", table.uuid)
    path = tags_path(world, "table", table.uuid)
    absent = {**tag, "name": unique("absent"), "id": str(uuid4())}

    def answers(which: dict[str, Any]) -> list[tuple[int, str]]:
        at = f"{TAG}/{which['id']}"
        body = {"name": unique("n"), "scope": ["table"]}
        found = [
            attach(world, which, path, by=stranger),
            detach(world, which, path, by=stranger),
            stranger.get(at),
            stranger.post(at, body),
            stranger.delete(at),
            stranger.get(f"{at}/attachments"),
            stranger.get(f"{at}/grants"),
        ]
        texts = [each.json()["error"]["message"] for each in found]
        names = (which["name"], "NAME"), (which["id"], "ID")
        for old, new in names:
            texts = [text.replace(old, new) for text in texts]
        return list(zip((each.status_code for each in found), texts, strict=True))

    assert answers(tag) == answers(absent)
    assert {code for code, _ in answers(tag)} == {404}


def test_absent_and_invisible_objects_have_the_same_answer(world: World, ns: str) -> None:
    tag, table, stranger = define(world), world.table(ns), world.stranger()
    world.grant("apply", stranger, "tag", tag["id"])
    for column in ("", "word"):
        found = [
            (each.status_code, each.json()["error"]["message"].replace(id, "ID"))
            for id in (table.uuid, str(uuid4()))
            for each in (
                attach(world, tag, tags_path(world, "table", id, column), by=stranger),
                stranger.get(tags_path(world, "table", id, column)),
            )
        ]
        assert found[:2] == found[2:]
        assert {code for code, _ in found} == {404}


def test_attachments_of_a_tag_are_not_shown_to_its_appliers(world: World) -> None:
    tag, applier = define(world), world.stranger()
    world.grant("apply", applier, "tag", tag["id"])
    assert applier.get(f"{TAG}/{tag['id']}").status_code == 200
    assert error_triple(applier.get(f"{TAG}/{tag['id']}/attachments"))[:2] == (403, "TagActionForbidden")
    for change in (applier.delete(f"{TAG}/{tag['id']}"), applier.get(f"{TAG}/{tag['id']}/grants")):
        assert change.status_code == 403


def test_tag_of_another_project_is_not_attached(world: World, ns: str) -> None:
    project = world.admin.post("/management/v1/project", {"project-name": unique("other")}).json()["project-id"]
    body = {"name": unique("foreign"), "scope": ["table"], "value-kind": "marker"}
    tag = world.admin.post(TAG, body, headers={"x-project-id": project})
    assert tag.status_code == 201, tag.text
    path = tags_path(world, "table", world.table(ns).uuid)
    assert error_triple(attach(world, tag.json(), path))[:2] == (404, "TagNotFound")
    assert world.admin.delete(f"{TAG}/{tag.json()['id']}").status_code == 204
    assert world.admin.delete(f"/management/v1/project/{project}").status_code == 204


def test_refused_attachment_changes_nothing(world: World, ns: str) -> None:
    table, stranger = world.table(ns), world.stranger()
    tag = define(world)
    world.delivered()
    before = world.rows()
    assert attach(world, tag, tags_path(world, "table", table.uuid), by=stranger).status_code == 404
    assert world.rows() == before


def test_search_by_tag_shows_a_column_grantee_no_tags(world: World, ns: str) -> None:
    """A column grantee sees that the table exists, without its metadata. The tags belong to the metadata."""
    tag, table, grantee = define(world), world.table(ns), world.stranger()
    assert attach(world, tag, tags_path(world, "table", table.uuid)).status_code == 200
    assert give(world, table, "word", grantee).status_code == 204
    assert search(world, tag["name"]) == [table.uuid]
    assert search(world, tag["name"], by=grantee) == []
    assert grantee.get(tags_path(world, "table", table.uuid)).status_code == 403
