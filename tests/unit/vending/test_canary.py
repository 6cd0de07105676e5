# SPDX-License-Identifier: Apache-2.0
"""The canary on stores that enforce session policies, except for chosen requests."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gateway.scope.credential import AccessLevel
from gateway.storage.provider import StorageClients
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.calls import UNSIGNED
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.trials import Act
from gateway.vending.canary import run_canary
from gateway.vending.scope_verdict import ScopeReport, Verdict
from tests.support.servers.lenient_store import ADMIN_PATHS, BUCKET, OWN_KEY, SETTINGS, LenientStore, lenient_store
from tests.support.servers.storage_routes import LOCAL, clients, object_files, s3_trials

pytestmark = pytest.mark.generated

KEY = S3AccessKey(access_key_id=OWN_KEY, secret_access_key="own")

#: Every attempt of the canary by name: what a store without any protection lets through.
ACTS = {act.value for act in Act}
CONTROL = {
    *(f"get-bucket-{name}" for name in SETTINGS),
    *(f"admin {path}" for path in ADMIN_PATHS),
    "list-buckets",
    "list-versions",
    "list-uploads",
    "put-object-acl",
    "put-object-tagging",
    "create-bucket",
    "get-session-token",
    "get-federation-token",
    "list-users",
    "create-user",
    *UNSIGNED,
}
#: `abort` and `delete-user` remove what such a store lets a session make.
LEAKS = (ACTS - {"overwrite"}) | CONTROL | {"assume-role", "abort", "delete-user"}


def _profile(url: str, **changes: Any) -> S3Profile:
    fields: dict[str, Any] = {
        "bucket": BUCKET,
        "region": "us-east-1",
        "key_prefix": "base",
        "endpoint": url,
        "sts_enabled": True,
        "flavor": Flavor.S3_COMPAT,
        "path_style_access": True,
    }
    return S3Profile(**(fields | changes))


def _clients() -> StorageClients:
    return clients(Sts(route=LOCAL), object_files(total_seconds=10), s3_trials(seconds=5))


async def _run(store: LenientStore, *, files_only: bool = False, **changes: Any) -> ScopeReport:
    """Run the canary in a store with an object of a customer, and check that nothing is left or changed."""
    store.objects = {"base/ns/t1/data.parquet": b"customer", "other/data.parquet": b"customer"}
    before = dict(store.objects)
    made = clients(Sts(route=LOCAL), object_files(total_seconds=10)) if files_only else _clients()
    report = await run_canary(_profile(store.url, **changes), KEY, made)
    assert store.objects == before
    assert not store.uploads and store.buckets == {BUCKET} and not store.users
    return report


async def test_a_store_that_enforces_policies_is_proven() -> None:
    with lenient_store() as store:
        report = await _run(store)
    assert report.findings == report.unclear == () and report.reason == ""
    assert report.verdict is Verdict.PROVEN and report.attempts > 150


async def test_a_store_that_requires_encryption_by_a_key_is_proven() -> None:
    """Requests without the profile's key would be refused for another reason than the scope."""
    key = "arn:aws:kms:us-east-1:000000000000:key/1"
    with lenient_store(requires_key=key) as store:
        assert (await _run(store, aws_kms_key_arn=key)).verdict is Verdict.PROVEN
        assert (await _run(store)).verdict is Verdict.INCONCLUSIVE


async def test_a_warehouse_that_is_a_whole_store_is_proven() -> None:
    with lenient_store() as store:
        report = await _run(store, key_prefix=None)
    assert report.verdict is Verdict.PROVEN


@pytest.mark.threat("LG-POL-08")
async def test_every_attempt_is_found_on_a_store_without_protection() -> None:
    """A canary that makes one kind of attempt less, or ignores its answer, fails here."""
    with lenient_store(lets_through=LEAKS) as store:
        report = await _run(store)
    assert report.verdict is Verdict.ESCAPED
    assert {finding.attempt for finding in report.findings} == ACTS | CONTROL | {"assume-role"}
    assert {finding.level for finding in report.findings} == {level.value for level in AccessLevel}
    at: dict[str, set[str]] = {}
    for finding in report.findings:
        at.setdefault(finding.place, set()).add(finding.attempt)
    # A list there finds something only while an object that another credential wrote has not been removed.
    at["other-top-folder"] -= {"list", "list-folders"}
    assert at == {
        "sibling": ACTS,
        "parent": ACTS,
        "other-top-folder": ACTS - {"overwrite", "copy-part", "delete-batch", "list", "list-folders"},
        "whole-store": {"list", "list-folders"},
        "own-name-without-slash": {"list", "list-folders"},
        "own-location": {"write", "overwrite", "multipart-upload", "copy", "delete", "delete-batch"},
        "session-service": {"assume-role"},
        "control-plane": CONTROL,
    }


@pytest.mark.parametrize(
    ("leak", "found"),
    [
        ("list", {"list"}),
        ("copy", {"copy"}),
        ("copy-part", {"copy-part"}),
        ("write", {"write", "overwrite"}),
        ("delete-batch", {"delete-batch"}),
        ("assume-role", {"assume-role"}),
        ("forged-write-by-query", {"forged-write-by-query"}),
        ("get-bucket-policy", {"get-bucket-policy"}),
    ],
)
async def test_a_single_leak_is_found_and_named(leak: str, found: set[str]) -> None:
    with lenient_store(lets_through={leak}) as store:
        report = await _run(store)
    assert report.verdict is Verdict.ESCAPED
    assert {finding.attempt for finding in report.findings} == found
    assert report.unclear == ()


async def test_the_file_client_alone_finds_reads_lists_writes_and_deletions() -> None:
    """A provider without requests of its own is tried with its file client."""
    with lenient_store() as store:
        assert (await _run(store, files_only=True)).verdict is Verdict.PROVEN
    with lenient_store(lets_through=LEAKS) as store:
        report = await _run(store, files_only=True)
    assert {finding.attempt for finding in report.findings} == {"read", "list", "write", "delete", "assume-role"}


@pytest.mark.parametrize("broken", ["copy", "get-session-token"])
async def test_an_unclear_answer_is_inconclusive(broken: str) -> None:
    with lenient_store(broken={broken}) as store:
        report = await _run(store)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert broken in {finding.attempt for finding in report.unclear}


async def test_an_escape_is_reported_although_other_answers_are_unclear() -> None:
    with lenient_store(lets_through={"copy"}, broken={"head"}) as store:
        report = await _run(store)
    assert report.verdict is Verdict.ESCAPED and report.unclear


async def test_a_store_that_refuses_everything_is_not_proven() -> None:
    """Without a positive control, a store that refuses every session would count as proven."""

    class Refusing(LenientStore):
        def _may(self, request: Any) -> bool:
            return False

    with lenient_store() as store:
        store.__class__ = Refusing
        report = await _run(store)
    assert report.verdict is Verdict.INCONCLUSIVE and "in its own location" in report.reason


async def test_objects_outside_of_the_base_are_removed_by_the_credential_that_wrote_them() -> None:
    """The gateway's own credential may have no right there."""

    class Confined(LenientStore):
        def answer(self, request: Any) -> Any:
            deletes = not request.session and request.kind in ("delete", "delete-batch")
            if deletes and not request.key.startswith("base/") and b"<Key>base/" not in request.body:
                return 403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
            return super().answer(request)

    with lenient_store(lets_through={"write", "delete", "delete-batch"}) as store:
        store.__class__ = Confined
        report = await _run(store)
    assert "other-top-folder" in {finding.place for finding in report.findings if finding.attempt == "write"}


async def test_a_store_that_does_not_answer_is_inconclusive() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        profile = _profile(f"http://127.0.0.1:{closed.getsockname()[1]}")
        report = await run_canary(profile, KEY, _clients(), seconds=5)
    assert report.verdict is Verdict.INCONCLUSIVE and report.findings == () and report.reason


async def test_a_warehouse_without_sessions_has_nothing_to_prove() -> None:
    report = await run_canary(_profile("http://127.0.0.1:9", sts_enabled=False), KEY, _clients())
    assert report.verdict is Verdict.NOT_VENDED and report.attempts == 0
