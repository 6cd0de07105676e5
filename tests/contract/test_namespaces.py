# SPDX-License-Identifier: Apache-2.0
"""The namespace endpoints of the catalog protocol."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from tests.support.stack.world import World, error_triple, send_until_decided, unique


def test_namespace_creation_returns_location_and_id(world: World) -> None:
    name = unique("made")
    made = world.bob.post(f"{world.root}/namespaces", {"namespace": [name], "properties": {"owner": "bob"}})
    assert made.status_code == 200
    body = made.json()
    assert body["namespace"] == [name]
    assert body["properties"]["owner"] == "bob"
    assert body["properties"]["location"].endswith("/")
    assert body["properties"]["namespace_id"] == world.namespace_id(name, by=world.bob)


def test_load_and_head_find_a_namespace(world: World, ns: str) -> None:
    assert world.alice.get(f"{world.root}/namespaces/{ns}").status_code == 200
    head = world.alice.head(f"{world.root}/namespaces/{ns}")
    assert (head.status_code, head.content) == (204, b"")


def test_second_namespace_of_a_name_in_any_letter_case_is_a_conflict(world: World, ns: str) -> None:
    for name in (ns, ns.upper()):
        again = world.admin.post(f"{world.root}/namespaces", {"namespace": [name]})
        assert error_triple(again) == (409, "AlreadyExistsException", f"Namespace already exists: {name}")


def test_one_of_many_concurrent_namespace_creations_succeeds(world: World) -> None:
    name = unique("rush")
    with ThreadPoolExecutor(8) as pool:
        people = [world.admin, world.bob] * 8
        path, body = f"{world.root}/namespaces", {"namespace": [name]}
        answers = list(pool.map(lambda person: send_until_decided(lambda: person.post(path, body)), people))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 15


def test_names_are_case_insensitive_and_returned_as_created(world: World) -> None:
    name = unique("MixedCase")
    world.namespace(name)
    assert world.admin.get(f"{world.root}/namespaces/{name.lower()}").json()["namespace"] == [name]
    assert [name] in world.admin.get(f"{world.root}/namespaces").json()["namespaces"]


@pytest.mark.parametrize(
    "level", ["with space", "ünïcode", "日本語", "quote'\"", "100% sure", "a*b", "${aws:username}", "😀"]
)
def test_a_name_is_decoded_once_in_the_path_and_in_the_query(world: World, ns: str, level: str) -> None:
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, level]}).status_code == 200
    encoded = f"{ns}%1F{quote(level, safe='')}"
    assert world.admin.get(f"{world.root}/namespaces/{encoded}").json()["namespace"] == [ns, level]
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, level, "leaf"]}).status_code == 200
    below = world.admin.get(f"{world.root}/namespaces?parent={encoded}").json()["namespaces"]
    assert below == [[ns, level, "leaf"]]


def test_space_in_a_name_is_accepted_as_plus_and_as_percent_20(world: World, ns: str) -> None:
    world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "two words"]})
    for spelling in ("two+words", "two%20words"):
        assert world.admin.head(f"{world.root}/namespaces/{ns}%1F{spelling}").status_code == 204


@pytest.mark.threat("LG-DIS-03")
def test_pages_are_full_for_a_reader_of_few_rows(world: World, ns: str) -> None:
    """Otherwise the length of a page would reveal the number of hidden rows."""
    for i in range(9):
        world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, f"q{i}"]})
    seen = [f"q{i}" for i in (1, 4, 8)]
    for name in seen:
        world.grant("describe", world.analyst, "namespace", world.namespace_id(f"{ns}%1F{name}"))
    path = f"{world.root}/namespaces?parent={ns}&pageSize=2&pageToken="
    first = world.analyst.get(path).json()
    assert [levels[-1] for levels in first["namespaces"]] == seen[:2]
    rest = world.analyst.get(path + first["next-page-token"]).json()
    assert [levels[-1] for levels in rest["namespaces"]] == seen[2:]
    assert rest["next-page-token"] is None


def test_an_escaped_backslash_before_u0000_is_plain_text_and_no_nul(world: World, ns: str) -> None:
    body = b'{"updates": {"a": "C:\\\\u0000"}}'
    assert world.admin.send("POST", f"{world.root}/namespaces/{ns}/properties", content=body).status_code == 200
    assert world.admin.get(f"{world.root}/namespaces/{ns}").json()["properties"]["a"] == "C:\\u0000"


def test_a_key_cannot_be_set_and_removed_at_once(world: World, ns: str) -> None:
    both = world.admin.post(f"{world.root}/namespaces/{ns}/properties", {"removals": ["k"], "updates": {"k": "v"}})
    assert error_triple(both)[:2] == (422, "UnprocessableEntityException")


@pytest.mark.threat("LG-LOC-07")
def test_namespace_location_cannot_be_changed(world: World, ns: str) -> None:
    path = f"{world.root}/namespaces/{ns}/properties"
    moved = world.admin.post(path, {"updates": {"location": f"s3://{world.bucket}/demo/elsewhere"}})
    assert error_triple(moved)[:2] == (400, "LocationCannotBeUpdated")
    assert error_triple(world.admin.post(path, {"removals": ["location"]}))[:2] == (400, "LocationCannotBeRemoved")


def test_setting_the_current_location_changes_nothing(world: World, ns: str) -> None:
    path = f"{world.root}/namespaces/{ns}"
    before = world.admin.get(path).json()["properties"]
    same = world.admin.post(f"{path}/properties", {"updates": {"location": before["location"]}})
    assert same.status_code == 200
    assert world.admin.get(path).json()["properties"] == before


@pytest.mark.threat("LG-DEC-06")
def test_properties_of_a_namespace_take_one_mebibyte_at_most(world: World, ns: str) -> None:
    """The limit counts bytes of UTF-8 after the change, not of one request."""
    most = 1024 * 1024
    name, root, path = unique("large"), f"{world.root}/namespaces", f"{world.root}/namespaces/{ns}"
    over = world.admin.post(root, {"namespace": [name], "properties": {"k": "x" * most}})
    assert over.status_code == 400, "a request above the limit must be refused"
    advice = "at most 1048576 are allowed. Set shorter values, or remove properties."
    about = "The properties of the namespace would take"
    assert error_triple(over) == (400, "BadRequestException", f"{about} {most + 1} bytes; {advice}")
    assert world.admin.head(f"{root}/{name}").status_code == 404
    wide = world.admin.post(f"{path}/properties", {"updates": {"k": "ß" * (most // 2)}})
    assert error_triple(wide)[:2] == (400, "BadRequestException")

    taken = sum(len(k) + len(v) for k, v in world.admin.get(path).json()["properties"].items() if k != "namespace_id")
    half, rest = most // 2, most - taken - most // 2 - 2
    assert world.admin.post(f"{path}/properties", {"updates": {"a": "x" * half}}).status_code == 200
    assert world.admin.post(f"{path}/properties", {"updates": {"b": "x" * rest}}).status_code == 200, (
        "properties of exactly the maximum size must be accepted"
    )
    before = world.admin.get(path).json()["properties"]
    again = world.admin.post(f"{path}/properties", {"updates": {"c": ""}})
    assert error_triple(again) == (400, "BadRequestException", f"{about} {most + 1} bytes; {advice}")
    assert world.admin.get(path).json()["properties"] == before
    swapped = world.admin.post(f"{path}/properties", {"updates": {"c": ""}, "removals": ["a"]})
    assert swapped.status_code == 200, "removed properties must not count against the limit"


def test_concurrent_property_changes_lose_no_update(world: World, ns: str) -> None:
    path = f"{world.root}/namespaces/{ns}/properties"
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda i: send_until_decided(lambda: world.admin.post(path, {"updates": {f"k{i}": "v"}})), range(24)
            )
        )
    assert {answer.status_code for answer in answers} == {200}
    kept = world.admin.get(f"{world.root}/namespaces/{ns}").json()["properties"]
    assert {f"k{i}" for i in range(24)} <= set(kept)


def test_only_an_empty_namespace_is_dropped(world: World, ns: str) -> None:
    table = world.table(ns)
    refused = world.admin.delete(f"{world.root}/namespaces/{ns}")
    assert error_triple(refused) == (409, "NamespaceNotEmptyException", f"Namespace {ns} is not empty")
    assert world.admin.delete(table.path).status_code == 204
    world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "child"]})
    assert error_triple(world.admin.delete(f"{world.root}/namespaces/{ns}"))[1] == "NamespaceNotEmptyException"
    assert world.admin.delete(f"{world.root}/namespaces/{ns}%1Fchild").status_code == 204
    dropped = world.admin.delete(f"{world.root}/namespaces/{ns}")
    assert (dropped.status_code, dropped.content) == (204, b"")
    assert world.admin.head(f"{world.root}/namespaces/{ns}").status_code == 404


def test_answers_have_the_spelling_of_the_creator_in_any_letter_case_of_the_request(world: World, ns: str) -> None:
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns.upper(), "Inner"]})
    assert (made.status_code, made.json()["namespace"]) == (200, [ns, "Inner"])
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns.upper(), "INNER", "Leaf"]})
    assert (made.status_code, made.json()["namespace"]) == (200, [ns, "Inner", "Leaf"])
    path = f"{world.root}/namespaces/{ns.upper()}%1FiNNer"
    assert world.admin.get(path).json()["namespace"] == [ns, "Inner"]
    listed = world.admin.get(f"{world.root}/namespaces", params={"parent": f"{ns.upper()}\x1fINNER"})
    assert listed.json()["namespaces"] == [[ns, "Inner", "Leaf"]]
    world.table(f"{ns}%1Fin%4EER", name="Tab")
    tables = world.admin.get(f"{path}/tables").json()["identifiers"]
    assert tables == [{"namespace": [ns, "Inner"], "name": "Tab"}]
    wanted = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    [keys] = world.admin.get(f"{path}/tables/TAB", headers=wanted).json()["storage-credentials"]
    endpoint = keys["config"]["client.refresh-credentials-endpoint"]
    assert endpoint.endswith(f"/namespaces/{ns}%1FInner/tables/Tab/credentials")


def test_child_namespace_needs_its_parent_and_at_most_five_levels(world: World, ns: str) -> None:
    orphan = world.admin.post(f"{world.root}/namespaces", {"namespace": ["nowhere_at_all", "child"]})
    assert error_triple(orphan) == (404, "NoSuchNamespaceException", "Namespace does not exist: nowhere_at_all")
    levels = [ns]
    for level in "bcde":
        levels.append(level)
        assert world.admin.post(f"{world.root}/namespaces", {"namespace": levels}).status_code == 200
    deeper = world.admin.post(f"{world.root}/namespaces", {"namespace": [*levels, "f"]})
    assert error_triple(deeper)[:2] == (400, "NamespaceDepthExceeded")
    # The depth is judged before anything is looked up.
    absent = ["nowhere_at_all", *"abcde"]
    deeper = world.admin.post(f"{world.root}/namespaces", {"namespace": absent})
    assert error_triple(deeper)[:2] == (400, "NamespaceDepthExceeded")
    for path in ("", "/tables/t", "/views/v"):
        named = world.admin.get(f"{world.root}/namespaces/{'%1F'.join(absent)}{path}")
        assert error_triple(named)[:2] == (400, "NamespaceDepthExceeded")
