# SPDX-License-Identifier: Apache-2.0
"""Notices of a project: create, get, list and delete, and grants on them."""

from __future__ import annotations

from tests.support.stack.world import World, error_triple, send_until_decided, unique

NOTICE = "/management/v1/notice"


def test_notice_is_created_read_listed_granted_and_deleted(world: World) -> None:
    body = {"name": unique("Freeze"), "text": "No writes on Friday."}
    created = world.admin.post(NOTICE, body)
    assert created.status_code == 201, created.text
    notice = created.json()
    path = f"{NOTICE}/{notice['id']}"
    assert {"name": notice["name"], "text": notice["text"]} == body
    assert send_until_decided(lambda: world.admin.get(path)).json() == notice
    assert notice in world.admin.get(NOTICE, params={"pageSize": "1000"}).json()["notices"]
    again = world.admin.post(NOTICE, {**body, "name": body["name"].upper()})
    assert error_triple(again)[:2] == (409, "NoticeNameAlreadyExists")
    stranger = world.stranger()
    assert error_triple(stranger.get(path))[:2] == (404, "NoticeNotFound")
    giving = {"writes": [{"privilege": "ownership", "principal": {"user": stranger.id}}]}
    assert world.admin.post(f"{path}/grants", giving).status_code == 204
    [held] = world.admin.get("/management/v1/grants", params={"principalUser": stranger.id}).json()["grants"]
    assert (held["resource"]["type"], held["resource"]["notice-id"]) == ("notice", notice["id"])
    assert held["resource"]["project-id"] == world.admin.get("/management/v1/project").json()["project-id"]
    assert stranger.delete(path).status_code == 204
    assert error_triple(world.admin.get(path))[:2] == (404, "NoticeNotFound")
    assert world.sql("select 1 from grants where object_type = 'notice' and object_id = $1", notice["id"]) == []
