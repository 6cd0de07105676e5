# SPDX-License-Identifier: Apache-2.0
"""The storage of a warehouse: permitted changes, validation before a change, and validation reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import World, error_triple, unique

pytestmark = pytest.mark.servers

RULES = [
    "profile-well-formed",
    "profile-compatible",
    "warehouse-name-valid",
    "location-exclusive",
    "spec-mutable",
    "format-version-policy-consistent",
    "managed-by-allowed",
]
STORE = [
    "storage-address-allowed",
    "storage-client-initialized",
    "lakekeeper-read-write",
    "vended-credentials-issued",
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "vended-credentials-policy-enforced",
    "vended-credentials-no-role-assumption",
    "vended-credentials-control-plane",
    "cleanup",
]


@pytest.fixture(scope="module")
def location() -> str:
    """Return the key prefix of the module's warehouse."""
    return unique("stored")


@pytest.fixture(scope="module")
def made(world: World, location: str) -> Made:
    """Create a warehouse whose storage the tests read and replace."""
    return warehouses.make(world, **warehouses.stored_at(world, location))


def _stored_as(world: World, profile: dict[str, Any]) -> Made:
    more: dict[str, Any] = {"storage-profile": profile}
    return warehouses.make(world, **more)


def report(world: World, path: str, body: Any = None) -> tuple[bool, dict[str, dict[str, Any]]]:
    """Request a validation, check its shape, and return (valid, checks by name)."""
    answer = world.admin.post(path, body)
    assert answer.status_code == 200, answer.text
    assert world.ready.s3.secret_key not in answer.text
    checks = answer.json()["checks"]
    assert [check["name"] for check in checks] == RULES + STORE
    for check in checks:
        members = {
            "passed": {"duration-ms"},
            "failed": {"duration-ms", "error"},
            "skipped": {"reason"},
        }[check["status"]]
        assert set(check) == {"name", "status"} | members, check
        if check["status"] == "failed":
            assert set(check["error"]) == {"message", "type", "code"}
    assert answer.json()["valid"] is all(check["status"] != "failed" for check in checks)
    return answer.json()["valid"], {check["name"]: check for check in checks}


def statuses(checks: dict[str, dict[str, Any]], names: list[str]) -> set[str]:
    return {checks[name]["status"] for name in names}


def test_creation_report_lists_each_check(world: World) -> None:
    path = "/management/v1/warehouse-creation-validation"
    body = warehouses.creation(world)
    valid, checks = report(world, path, body)
    assert valid
    assert statuses(checks, STORE) == {"passed"}
    assert [name for name in RULES if checks[name]["status"] == "skipped"] == ["profile-compatible", "spec-mutable"]

    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "profile-well-formed": ({"storage-profile": {"type": "s3", "bucket": "b"}}, "InvalidStorageProfile"),
        "warehouse-name-valid": ({"warehouse-name": "DEMO"}, "WarehouseNameAlreadyTaken"),
        "format-version-policy-consistent": (
            {"allowed-format-versions": [1], "default-format-version": 3},
            "DefaultFormatVersionNotAllowed",
        ),
        "managed-by-allowed": ({"managed-by": "instance-admin"}, "InstanceAdminRequired"),
        "location-exclusive": (
            {"storage-profile": warehouses.profile(world, str(world.ready.s3.profile.get("key-prefix") or "demo"))},
            "CreateWarehouseStorageProfileOverlap",
        ),
    }
    [base] = world.sql(
        "select convert_from(profile, 'UTF8')::jsonb->>'key-prefix' as at from warehouses where name = 'demo'"
    )
    wrong["location-exclusive"][0]["storage-profile"]["key-prefix"] = f"{base['at']}/inside".upper()
    for name, (change, type) in wrong.items():
        valid, checks = report(world, path, {**body, **change})
        assert (valid, checks[name]["status"], checks[name]["error"]["type"]) == (False, "failed", type), name
        assert statuses(checks, STORE) == {"skipped"}, "a warehouse that cannot be created must not be written to"


def test_creation_is_refused_for_a_failed_check_of_its_report(world: World) -> None:
    refused = world.admin.post(
        "/management/v1/warehouse", warehouses.creation(world, **{"managed-by": "instance-admin"})
    )
    assert error_triple(refused)[:2] == (403, "InstanceAdminRequired")
    none = world.admin.post("/management/v1/warehouse", warehouses.creation(world, **{"storage-credential": None}))
    assert error_triple(none)[:2] == (400, "StorageValidationFailed")
    assert any("storage-client-initialized" in line for line in none.json()["error"]["stack"])


def test_warehouse_location_cannot_be_changed(world: World, made: Made, location: str) -> None:
    before = world.admin.get(made.path).json()
    for change in (
        {"bucket": "another-bucket"},
        {"key-prefix": f"{location}/deeper"},
        {"key-prefix": location.upper()},
        {"key-prefix": None},
    ):
        body = {
            "storage-profile": {**warehouses.profile(world, location), **change},
            "storage-credential": warehouses.credential(world),
        }
        refused = world.admin.post(f"{made.path}/storage", body)
        assert error_triple(refused)[:2] == (400, "UpdateError"), change
        assert next(iter(change)) in error_triple(refused)[2]
        valid, checks = report(world, f"{made.path}/storage/validate-profile", body)
        assert (valid, checks["profile-compatible"]["error"]["type"]) == (False, "UpdateError")
        assert statuses(checks, STORE) == {"skipped"}
    assert world.admin.get(made.path).json() == before


def test_replaced_profile_applies_at_once(world: World, made: Made, location: str) -> None:
    path = made.table(world.admin)
    assert "s3.session-token" in world.admin.get(f"{path}/credentials").text
    body = {
        "storage-profile": warehouses.profile(world, location, **{"sts-enabled": False}),
        "storage-credential": warehouses.credential(world),
    }
    valid, checks = report(world, f"{made.path}/storage/validate-profile", body)
    assert valid
    assert statuses(checks, STORE[3:-1]) == {"skipped"}, "checks of vended keys must be skipped"
    assert "s3.session-token" in world.admin.get(f"{path}/credentials").text, (
        "a failed validation must not change the credential"
    )
    done = world.admin.post(f"{made.path}/storage", body)
    assert done.status_code == 200
    assert done.json()["storage-profile"]["sts-enabled"] is False
    assert world.ready.s3.secret_key not in done.text
    for _ in range(4):
        assert error_triple(world.admin.get(f"{path}/credentials"))[0] == 403, (
            "cached keys of the former credential must not be returned"
        )
    back = world.admin.post(f"{made.path}/storage", {**body, "storage-profile": warehouses.profile(world, location)})
    assert back.status_code == 200
    assert "s3.session-token" in world.admin.get(f"{path}/credentials").text


def test_location_is_blocked_until_keys_of_earlier_profiles_expire(world: World) -> None:
    location = unique("stored")

    def storage(seconds: int) -> dict[str, Any]:
        return warehouses.profile(world, location, **{"sts-token-validity-seconds": seconds})

    longer: dict[str, Any] = {"storage-profile": storage(7200)}
    made = warehouses.make(world, **longer)
    path = made.table(world.admin)
    shorter = {"storage-profile": storage(900), "storage-credential": warehouses.credential(world)}
    assert world.admin.post(f"{made.path}/storage", shorter).status_code == 200
    assert world.admin.delete(path).status_code == 204
    [row] = world.sql(
        "select extract(epoch from keys_until - now())::int as left from retired_locations where warehouse_id = $1",
        made.id,
    )
    assert 7000 < row["left"] < 7300


def test_key_lifetime_is_recorded_with_each_profile(world: World) -> None:
    location = unique("stored")
    recorded = "select key_seconds from warehouses where id = $1::text::uuid"
    made = _stored_as(world, warehouses.profile(world, location))
    assert world.sql(recorded, made.id)[0]["key_seconds"] == 3660
    for changed, seconds in (({"sts-token-validity-seconds": 900}, 960), ({"sts-enabled": False}, 0)):
        body = {
            "storage-profile": warehouses.profile(world, location, **changed),
            "storage-credential": warehouses.credential(world),
        }
        assert world.admin.post(f"{made.path}/storage", body).status_code == 200
        assert world.sql(recorded, made.id)[0]["key_seconds"] == seconds


def test_location_stays_reserved_for_the_recorded_key_lifetime(world: World) -> None:
    """The database cannot read this profile, as for other storage providers."""
    made = _stored_as(world, warehouses.profile(world, unique("wh"), **{"sts-enabled": False}))
    change = "update warehouses set key_seconds = $2::int, profile = convert_to($3, 'UTF8') where id = $1::text::uuid"
    left = "select extract(epoch from keys_until - now())::int as left from {} where {} = $1::text::uuid"
    first, second = made.table(world.admin), made.table(world.admin)
    [before] = world.sql(
        "select convert_from(profile, 'UTF8') as text from warehouses where id = $1::text::uuid", made.id
    )
    world.sql(change, made.id, 7200, before["text"])
    assert world.admin.delete(first).status_code == 204
    [row] = world.sql(left.format("retired_locations", "warehouse_id"), made.id)
    assert 7000 < row["left"] <= 7200
    # A profile with a shorter key lifetime does not shorten the wait for keys that are already vended.
    world.sql(change, made.id, 960, before["text"].replace("{", "{ ", 1))
    [row] = world.sql(left.format("warehouses", "id"), made.id)
    assert 7000 < row["left"] <= 7200
    assert world.admin.delete(second).status_code == 204
    rows = world.sql(left.format("retired_locations", "warehouse_id"), made.id)
    assert [7000 < row["left"] <= 7200 for row in rows] == [True, True]


def test_credential_is_validated_before_replacement(world: World, made: Made) -> None:
    good = {"new-storage-credential": warehouses.credential(world)}
    wrong = {"new-storage-credential": {**warehouses.credential(world), "secret-access-key": "not-the-secret-of-this"}}
    [before] = world.sql("select secret_id, profile_version from warehouses where id = $1::text::uuid", made.id)
    for body, failed in ((wrong, "storage-client-initialized"), ({}, "storage-client-initialized")):
        assert error_triple(world.admin.post(f"{made.path}/storage-credential", body))[:2] == (
            400,
            "StorageValidationFailed",
        )
        valid, checks = report(world, f"{made.path}/storage/validate-credential", body)
        assert (valid, checks[failed]["status"]) == (False, "failed")
    malformed = world.admin.post(f"{made.path}/storage-credential", {"new-storage-credential": {"type": "s3"}})
    assert error_triple(malformed)[:2] == (400, "InvalidStorageCredential")
    query = "select secret_id, profile_version from warehouses where id = $1::text::uuid"
    assert world.sql(query, made.id) == [before]
    assert report(world, f"{made.path}/storage/validate-credential", good)[0]
    done = world.admin.post(f"{made.path}/storage-credential", good)
    assert done.status_code == 200
    assert done.json()["storage-credential-type"] == {"type": "s3", "credential-type": "access-key"}
    [after] = world.sql(query, made.id)
    assert after["secret_id"] != before["secret_id"]
    assert after["profile_version"] == before["profile_version"] + 1
    [kept] = world.sql("select replaced_at from secrets where id = $1", before["secret_id"])
    assert kept["replaced_at"] is not None, "the former profile must be kept for requests in progress"
    assert world.admin.get(made.table(world.admin)).status_code == 200


def test_replaced_credential_is_deleted(world: World, made: Made) -> None:
    [row] = world.sql("select secret_id from warehouses where id = $1::text::uuid", made.id)
    good = {"new-storage-credential": warehouses.credential(world)}
    assert world.admin.post(f"{made.path}/storage-credential", good).status_code == 200
    world.sql("update secrets set replaced_at = now() - interval '1 hour' where id = $1", row["secret_id"])
    warehouses.until(lambda: not world.sql("select 1 from secrets where id = $1", row["secret_id"]))
    assert world.sql("select 1 from secrets s join warehouses w on w.secret_id = s.id where w.id::text = $1", made.id)


def test_current_storage_can_be_read(world: World, made: Made) -> None:
    world.quiet()
    files = world.objects()
    valid, checks = report(world, f"{made.path}/storage/validate-access")
    assert valid
    assert statuses(checks, STORE) == {"passed"}
    assert checks["location-exclusive"]["status"] == "passed"
    assert world.objects() == files
