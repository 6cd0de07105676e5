# SPDX-License-Identifier: Apache-2.0
"""Signed requests reach the files of their table and nothing else, on the real object store (LG-DIS-08)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from tests.support.stack import warehouses
from tests.support.stack.bound_policies import bind as bind_policy
from tests.support.stack.lifecycle import soft_world
from tests.support.stack.remote_signing import REMOTE_SIGNING, SignedTable
from tests.support.stack.world import SCHEMA, Person, Table, World, error_triple, send_until_decided, unique


def _delete_body(*keys: str) -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}</Delete>'


def _table_in(world: World, more: dict[str, Any]) -> SignedTable:
    """Create a table in a new warehouse whose storage profile has these fields too."""
    fields: dict[str, Any] = {"storage-profile": warehouses.profile(world, **more)}
    made = warehouses.make(world, **fields)
    path = made.table(world.admin)
    return _of(world, made.id, path, world.admin.get(path).json())


def _of(world: World, warehouse: str, path: str, answer: dict[str, object]) -> SignedTable:
    metadata = answer["metadata"]
    assert isinstance(metadata, dict)
    name, namespace = path.rpartition("/")[2], path.split("/namespaces/")[1].split("/")[0]
    return SignedTable(
        world,
        warehouse,
        Table(
            namespace=namespace,
            name=name,
            uuid=metadata["table-uuid"],
            location=metadata["location"],
            path=path,
            answer=answer,
        ),
    )


@pytest.fixture(scope="module")
def with_sessions(world: World) -> SignedTable:
    """A table of a warehouse whose requests are signed with sessions of the table."""
    return SignedTable(world, world.warehouse, world.table(world.namespace()))


@pytest.fixture(scope="module")
def with_own_key(world: World) -> SignedTable:
    """A table of a warehouse without sessions, whose own key signs."""
    return _table_in(world, {"sts-enabled": False})


@pytest.fixture(params=["session", "own key"])
def signed(request: pytest.FixtureRequest, with_sessions: SignedTable, with_own_key: SignedTable) -> SignedTable:
    return with_sessions if request.param == "session" else with_own_key


def _secret(signed: SignedTable, key: str) -> str:
    """Put an object outside of the table; return its key."""
    signed.world.s3.put_object(Bucket=signed.world.bucket, Key=key, Body=b"SECRET")
    return key


# ---- what is signed works --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data/a b+c=d&e.parquet", "data/ü/x%20y.parquet", "data/a;b,c:d@e!f$g'(h)*.parquet"])
def test_signed_requests_read_write_list_and_delete(signed: SignedTable, name: str) -> None:
    admin, uri = signed.world.admin, signed.uri(quote(name))
    assert signed.sign(admin, "PUT", uri).send(b"rows").status_code == 200
    assert signed.sign(admin, "GET", uri).send().content == b"rows"
    part = signed.sign(admin, "GET", uri, headers={"Range": ["bytes=1-2"]})
    assert part.send().content == b"ow"
    assert signed.sign(admin, "HEAD", uri).send().headers["content-length"] == "4"
    assert signed.prefix in signed.sign(admin, "GET", signed.list_uri()).send().text
    below = signed.list_uri(signed.prefix + "data/", delimiter="/", **{"max-keys": "1000"})
    assert signed.sign(admin, "GET", below).send().status_code == 200
    assert signed.sign(admin, "DELETE", uri).send().status_code == 204
    assert signed.sign(admin, "GET", uri).send().status_code == 404


def test_a_signed_upload_in_parts_is_completed_or_aborted(signed: SignedTable) -> None:
    admin, uri = signed.world.admin, signed.uri("data/parts.parquet")
    for complete in (True, False):
        begun = signed.sign(admin, "POST", f"{uri}?uploads").send()
        found = re.search("<UploadId>(.+)</UploadId>", begun.text)
        assert found is not None, begun.text
        upload = f"uploadId={quote(found[1], safe='')}"
        sent = signed.sign(admin, "PUT", f"{uri}?partNumber=1&{upload}").send(b"x" * 100)
        assert sent.status_code == 200, sent.text
        if complete:
            body = (
                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
                f"<ETag>{sent.headers['etag']}</ETag></Part></CompleteMultipartUpload>"
            )
            assert signed.sign(admin, "POST", f"{uri}?{upload}").send(body.encode()).status_code == 200
            assert len(signed.sign(admin, "GET", uri).send().content) == 100
        else:
            assert signed.sign(admin, "DELETE", f"{uri}?{upload}").send().status_code == 204


def test_a_signed_deletion_of_several_objects_deletes_them(with_sessions: SignedTable) -> None:
    signed, admin = with_sessions, with_sessions.world.admin
    keys = [_secret(signed, f"{signed.prefix}data/gone{number}") for number in (1, 2)]
    body = _delete_body(*keys)
    uri = f"{signed.uri_of('')}?delete"
    assert signed.sign(admin, "POST", uri, body=body).send(body.encode()).status_code == 200
    assert not [key for key, _ in signed.world.objects(signed.prefix) if key in keys]


def test_the_protocols_path_signs_too(signed: SignedTable) -> None:
    admin = signed.world.admin
    uri = signed.uri("data/by-name")
    path = f"{signed.table.path}/sign"
    assert signed.sign(admin, "PUT", uri, path=path, provider="s3", properties={}).send(b"x").status_code == 200
    answer = signed.ask(admin, "GET", uri, path=path)
    # A Java client would give a kept signature to other users of its process.
    assert answer.headers["cache-control"] == "no-store"
    assert signed.ask(admin, "PUT", uri, path=path).headers["cache-control"] == "no-store"


def test_signed_answers_contain_no_secret(signed: SignedTable) -> None:
    answer = signed.ask(signed.world.admin, "GET", signed.uri("data/a"))
    assert signed.world.ready.s3.secret_key not in answer.text
    assert "secret" not in answer.text.lower()


# ---- what is refused -------------------------------------------------------------------------------------------


def _outside(signed: SignedTable) -> list[tuple[str, str]]:
    bucket, prefix, store = signed.world.bucket, signed.prefix, signed.world.ready.s3.endpoint
    bare = prefix.removesuffix("/")
    host = httpx.URL(store)
    return [
        ("another key", signed.uri_of("other/secret")),
        ("a sibling prefix", signed.uri_of(f"{bare}0/secret")),
        ("the folder itself", signed.uri_of(bare)),
        ("a climb", f"{signed.uri()}../secret"),
        ("an encoded climb", f"{signed.uri()}%2e%2e/secret"),
        ("a climb with an encoded slash", f"{signed.uri()}..%2Fsecret"),
        ("a climb encoded twice", f"{signed.uri()}%252e%252e/secret"),
        ("an empty segment", f"{signed.uri()}/secret"),
        ("another bucket", f"{store}/other/{prefix}secret"),
        ("another server", f"http://example.com/{bucket}/{prefix}secret"),
        ("another port", f"{host.scheme}://{host.host}:1/{bucket}/{prefix}secret"),
        ("a user in the address", f"{host.scheme}://x@{host.netloc.decode()}/{bucket}/{prefix}secret"),
        ("the bucket in the host", f"{host.scheme}://other.{host.netloc.decode()}/{prefix}secret"),
        ("a backslash", f"{signed.uri()}..%5Csecret"),
        ("an access list", signed.uri("data/a", "acl")),
        ("a policy", f"{store}/{bucket}?policy"),
        ("a version", signed.uri("data/a", "versionId=1")),
        ("an unknown parameter", signed.uri("data/a", "x-unknown=1")),
        ("a parameter twice", signed.uri("data/a", "x-id=GetObject&x-id=PutObject")),
        ("an expiry of its own", signed.uri("data/a", "X-Amz-Expires=604800")),
        ("another response type", signed.uri("data/a", "response-content-type=text%2Fhtml")),
        ("all buckets", f"{store}/"),
        ("a list without a prefix", f"{store}/{bucket}?list-type=2"),
        ("a list above the table", signed.list_uri(bare)),
        ("a list of a sibling", signed.list_uri(f"{bare}0/")),
        ("a list with a climb", signed.list_uri(f"{prefix}../")),
        ("an old list", f"{store}/{bucket}?prefix={quote(prefix)}"),
        ("a list of versions", f"{store}/{bucket}?versions&prefix={quote(prefix)}"),
        ("a list with two prefixes", f"{signed.list_uri()}&prefix="),
    ]


@pytest.mark.threat("LG-DIS-08")
def test_requests_for_anything_else_are_refused(signed: SignedTable) -> None:
    for name, uri in _outside(signed):
        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            answer = signed.ask(signed.world.admin, method, uri)
            assert answer.status_code == 400, (name, method, answer.text)
            assert "authorization" not in answer.text.lower()


@pytest.mark.threat("LG-DIS-08")
@pytest.mark.parametrize(
    "header",
    ["x-amz-copy-source", "x-amz-acl", "x-amz-website-redirect-location", "x-amz-tagging", "x-forwarded-prefix"],
)
def test_headers_that_change_a_request_are_refused(signed: SignedTable, header: str) -> None:
    value = f"/{signed.world.bucket}/{_secret(signed, 'other/secret')}"
    answer = signed.ask(signed.world.admin, "PUT", signed.uri("data/copy"), headers={header: [value]})
    assert error_triple(answer)[:2] == (400, "UnsupportedSignRequest")


@pytest.mark.threat("LG-DIS-08")
def test_a_deletion_with_one_foreign_key_is_refused(signed: SignedTable) -> None:
    foreign, own = _secret(signed, "other/kept"), _secret(signed, f"{signed.prefix}data/kept")
    for body in (_delete_body(own, foreign), _delete_body(foreign), None, _delete_body(own).replace("Key", "key")):
        more = {} if body is None else {"body": body}
        answer = signed.ask(signed.world.admin, "POST", f"{signed.uri_of('')}?delete", **more)
        assert answer.status_code == 400, answer.text
    assert {foreign, own} <= {key for key, _ in signed.world.objects()}


def test_another_region_or_provider_is_refused(signed: SignedTable) -> None:
    admin, uri = signed.world.admin, signed.uri("data/a")
    assert error_triple(signed.ask(admin, "GET", uri, region="eu-west-9"))[:2] == (400, "RegionMismatch")
    assert error_triple(signed.ask(admin, "GET", uri, provider="gcs"))[:2] == (400, "UnsupportedSignRequest")


# ---- a signature is worth nothing for another request -------------------------------------------------------------


@pytest.mark.threat("LG-DIS-08")
def test_a_signature_fits_no_other_request(signed: SignedTable) -> None:
    secret = _secret(signed, "other/secret")
    admin, bucket = signed.world.admin, signed.world.bucket
    signed.sign(admin, "PUT", signed.uri("data/a")).send(b"mine")
    read = signed.sign(admin, "GET", signed.uri("data/a"))
    assert read.send(uri=signed.uri_of(secret)).status_code == 403
    assert read.send(uri=signed.uri("data/a", "acl")).status_code == 403
    assert httpx.put(read.uri, headers=read.headers, content=b"x").status_code == 403
    assert httpx.delete(read.uri, headers=read.headers).status_code == 403
    write = signed.sign(admin, "PUT", signed.uri("data/copy"))
    for name in ("x-amz-copy-source", "x-amz-acl", "x-amz-meta-owner"):
        forged = write.send(more={name: f"/{bucket}/{secret}"})
        assert forged.status_code == 403, (name, forged.text)
    listed = signed.sign(admin, "GET", signed.list_uri())
    assert listed.send(uri=signed.list_uri("other/")).status_code == 403


@pytest.mark.threat("LG-DIS-08")
def test_forwarded_headers_give_no_access_to_another_key(signed: SignedTable) -> None:
    """The store computes the signature over `X-Forwarded-Prefix` and the path. Part of a signed key is another key."""
    secret, bucket = _secret(signed, "other/secret"), signed.world.bucket
    start = f"/{bucket}/{signed.prefix}data"
    read = signed.sign(signed.world.admin, "GET", signed.uri(f"data/{bucket}/{secret}"))
    for more in ({"X-Forwarded-Prefix": start}, {"x-forwarded-prefix": start, "X-Forwarded-Host": "other"}):
        forged = read.send(uri=signed.uri_of(secret), more=more)
        assert forged.status_code == 403, forged.text
        assert b"SECRET" not in forged.content
    write = signed.sign(signed.world.admin, "PUT", signed.uri(f"data/{bucket}/{secret}"))
    assert write.send(b"forged", uri=signed.uri_of(secret), more={"X-Forwarded-Prefix": start}).status_code == 403
    assert signed.world.s3.get_object(Bucket=bucket, Key=secret)["Body"].read() == b"SECRET"


@pytest.mark.threat("LG-DIS-08")
def test_a_signed_deletion_deletes_no_foreign_key_of_another_body(with_sessions: SignedTable) -> None:
    """The store does not compare the body with its signed hash. The session's policy refuses the foreign key."""
    signed = with_sessions
    foreign, own = _secret(signed, "other/kept"), _secret(signed, f"{signed.prefix}data/own")
    deletion = signed.sign(signed.world.admin, "POST", f"{signed.uri_of('')}?delete", body=_delete_body(own))
    deletion.send(_delete_body(foreign).encode())
    assert foreign in {key for key, _ in signed.world.objects()}


@pytest.mark.threat("LG-DIS-08")
def test_an_own_key_signs_no_deletion_of_several_objects(with_own_key: SignedTable) -> None:
    signed = with_own_key
    own = _secret(signed, f"{signed.prefix}data/own")
    answer = signed.ask(signed.world.admin, "POST", f"{signed.uri_of('')}?delete", body=_delete_body(own))
    assert error_triple(answer)[:2] == (400, "UnsupportedSignRequest")


# ---- who gets signatures -------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-DIS-08")
def test_a_reader_reads_and_cannot_sign_changes(with_sessions: SignedTable) -> None:
    signed, alice = with_sessions, with_sessions.world.alice
    for method, uri in (
        ("PUT", "data/x"),
        ("DELETE", "data/x"),
        ("POST", "data/x?uploads"),
        ("POST", "data/x?uploadId=1"),
    ):
        answer = signed.ask(alice, method, signed.uri(uri))
        assert error_triple(answer)[:2] == (403, "TableActionForbidden"), (method, uri)
    body = _delete_body(f"{signed.prefix}data/x")
    deletion = signed.ask(alice, "POST", f"{signed.uri_of('')}?delete", body=body)
    assert error_triple(deletion)[:2] == (403, "TableActionForbidden")
    metadata = signed.table.answer["metadata-location"].rpartition("/metadata/")[2]
    assert signed.sign(alice, "GET", signed.uri(f"metadata/{metadata}")).send().status_code == 200


@pytest.mark.threat("LG-DIS-05")
def test_after_a_revocation_the_next_request_is_refused(with_sessions: SignedTable) -> None:
    signed, world = with_sessions, with_sessions.world
    person = world.stranger()
    world.grant("select", person, "table", signed.table.uuid)
    for _ in range(3):
        assert signed.ask(person, "GET", signed.uri("data/a")).status_code == 200
    world.revoke("select", person, "table", signed.table.uuid)
    assert error_triple(signed.ask(person, "GET", signed.uri("data/a")))[:2] == (400, "NoSuchTableLocationException")


@pytest.mark.threat("LG-DIS-01")
def test_an_invisible_table_is_answered_like_an_absent_one(with_sessions: SignedTable) -> None:
    signed, world = with_sessions, with_sessions.world
    person = world.stranger()
    nowhere = "00000000-0000-4000-8000-000000000001"
    paths = [
        signed.endpoint,
        signed.endpoint.replace(signed.table.uuid, nowhere),
        signed.endpoint.replace(signed.warehouse, nowhere),
        f"{signed.table.path}/sign",
        f"{signed.table.path}absent/sign",
    ]
    answers = [
        signed.ask(person, method, signed.uri("data/a"), path=path) for path in paths for method in ("GET", "PUT")
    ]
    assert {error_triple(answer) for answer in answers} == {error_triple(answers[0])}
    assert error_triple(answers[0])[:2] == (400, "NoSuchTableLocationException")
    assert error_triple(signed.ask(world.admin, "GET", signed.uri("data/a"), path=paths[1])) == error_triple(answers[0])


@pytest.mark.threat("LG-DIS-08")
def test_the_files_of_another_table_are_refused_at_the_endpoint_of_this_one(with_sessions: SignedTable) -> None:
    signed, world = with_sessions, with_sessions.world
    other = SignedTable(world, world.warehouse, world.table(signed.table.namespace))
    assert error_triple(signed.ask(world.admin, "GET", other.uri("data/a")))[:2] == (400, "RequestUriMismatch")


@pytest.fixture(scope="module")
def soft(world: World) -> Iterator[World]:
    """The world in a warehouse with soft deletion."""
    made = soft_world(world, seconds=3600)
    yield made
    made.close()


def _dropped_table(soft: World) -> tuple[SignedTable, Person]:
    """Return a dropped table, and the user with `modify` that dropped it."""
    table = soft.table(soft.namespace())
    signed, person = SignedTable(soft, soft.warehouse, table), soft.stranger("dropper")
    soft.grant("modify", person, "table", table.uuid)
    soft.s3.put_object(Bucket=soft.bucket, Key=f"{signed.prefix}data/a", Body=b"rows")
    assert send_until_decided(lambda: person.delete(table.path)).status_code == 204
    return signed, person


@pytest.mark.threat("LG-DIS-25")
def test_the_user_that_dropped_a_table_reads_and_deletes_its_files_and_writes_none(soft: World) -> None:
    signed, person = _dropped_table(soft)
    assert signed.sign(person, "HEAD", signed.uri("data/a")).send().status_code == 200
    assert signed.sign(person, "GET", signed.uri("data/a")).send().content == b"rows"
    assert signed.sign(person, "DELETE", signed.uri("data/a")).send().status_code == 204
    assert signed.sign(person, "HEAD", signed.uri("data/a")).send().status_code == 404
    status, type, message = error_triple(signed.ask(person, "PUT", signed.uri("data/b")))
    assert (status, type) == (403, "SigningForbidden")
    assert "dropped" in message


@pytest.mark.threat("LG-DIS-25")
def test_no_other_user_signs_for_a_dropped_table_whatever_its_rights(soft: World) -> None:
    signed, _ = _dropped_table(soft)
    absent = signed.endpoint.replace(signed.table.uuid, "00000000-0000-4000-8000-000000000001")
    writer = soft.stranger("writer")
    soft.grant("modify", writer, "namespace", soft.namespace_id(signed.table.namespace))
    for person in (soft.admin, writer, soft.stranger()):
        for method in ("GET", "DELETE"):
            answers = [
                signed.ask(person, method, signed.uri("data/a"), path=path) for path in (signed.endpoint, absent)
            ]
            assert error_triple(answers[0]) == error_triple(answers[1])
            assert error_triple(answers[0])[:2] == (400, "NoSuchTableLocationException")


@pytest.mark.threat("LG-DIS-25")
def test_signing_for_a_dropped_table_ends_with_the_day_and_with_the_right(soft: World) -> None:
    signed, person = _dropped_table(soft)
    uri = signed.uri("data/a")
    assert signed.ask(person, "DELETE", uri).status_code == 200
    # Another day.
    soft.sql(
        "update tables set deleted_at = deleted_at - interval '25 hours' where id = $1 returning id",
        UUID(signed.table.uuid),
    )
    assert error_triple(signed.ask(person, "DELETE", uri))[:2] == (400, "NoSuchTableLocationException")
    soft.sql(
        "update tables set deleted_at = deleted_at + interval '25 hours' where id = $1 returning id",
        UUID(signed.table.uuid),
    )
    assert signed.ask(person, "DELETE", uri).status_code == 200
    soft.revoke("modify", person, "table", signed.table.uuid)
    assert error_triple(signed.ask(person, "DELETE", uri))[:2] == (400, "NoSuchTableLocationException")


@pytest.mark.threat("LG-DIS-25")
def test_a_new_table_of_the_name_is_not_reached_through_the_address_of_the_dropped_one(soft: World) -> None:
    signed, person = _dropped_table(soft)
    new = SignedTable(soft, soft.warehouse, soft.table(signed.table.namespace, signed.table.name))
    assert error_triple(signed.ask(person, "DELETE", new.uri("data/a")))[:2] == (400, "RequestUriMismatch")
    for path in (new.endpoint, f"{new.table.path}/sign"):
        answer = signed.ask(person, "DELETE", new.uri("data/a"), path=path)
        assert error_triple(answer)[:2] == (400, "NoSuchTableLocationException")


@pytest.mark.threat("LG-DIS-25")
def test_a_data_policy_holds_for_the_files_of_a_dropped_table(soft: World) -> None:
    signed, person = _dropped_table(soft)
    assert signed.ask(person, "GET", signed.uri("data/a")).status_code == 200
    mask = {"kind": "mask", "action": "replace-with-null", "columns": [{"name": "word"}]}
    policy = bind_policy(soft, mask, "table", signed.table.uuid)
    try:
        for method in ("GET", "HEAD", "DELETE"):
            assert signed.ask(person, method, signed.uri("data/a")).status_code == 403
    finally:
        soft.sql("delete from data_policies where id = $1::uuid returning id", policy)


def test_a_warehouse_that_disabled_signing_signs_nothing(world: World) -> None:
    signed = _table_in(world, {"remote-signing-enabled": False})
    answer = signed.ask(world.admin, "GET", signed.uri("data/a"))
    assert error_triple(answer)[:2] == (403, "RemoteSigningDisabled")
    config = world.admin.get(signed.table.path, headers=REMOTE_SIGNING).json()["config"]
    assert "s3.session-token" in config
    assert "signer.endpoint" not in config


@pytest.mark.parametrize(("style", "accepted"), [("path", True), ("auto", True), ("virtual_host", False)])
def test_the_url_style_of_the_profile_is_enforced(world: World, style: str, accepted: bool) -> None:
    signed = _table_in(world, {"remote-signing-url-style": style})
    answer = signed.ask(world.admin, "GET", signed.uri("data/a"))
    assert answer.status_code == (200 if accepted else 400), answer.text
    host = httpx.URL(world.ready.s3.endpoint)
    in_host = f"{host.scheme}://{world.bucket}.{host.netloc.decode()}/{signed.prefix}data/a"
    assert signed.ask(world.admin, "GET", in_host).status_code == (200 if style == "virtual_host" else 400)


@pytest.mark.threat("LG-DIS-08")
def test_no_signature_is_for_another_bucket_of_the_store(world: World) -> None:
    """The store finds the bucket in the path. So it reads `other/f` in the host of this bucket as `f` in `other`."""
    own, other = (unique("bucket").replace("_", "-") for _ in range(2))
    for bucket in (own, other):
        world.s3.create_bucket(Bucket=bucket)
    world.s3.put_object(Bucket=other, Key="files/secret", Body=b"SECRET")
    profile = {**warehouses.profile(world), "bucket": own, "key-prefix": None, "sts-enabled": False}
    fields: dict[str, Any] = {"storage-profile": profile}
    made = warehouses.make(world, **fields)
    path = made.table(world.admin)
    body = {"name": unique("t"), "schema": SCHEMA, "location": f"s3://{own}/{other}/files"}
    created = world.admin.post(path.rpartition("/")[0], body)
    assert created.status_code == 200, created.text
    signed, store = _of(world, made.id, path, created.json()), httpx.URL(world.ready.s3.endpoint)
    host = f"{own}.{store.netloc.decode()}"
    for method in ("GET", "PUT", "DELETE"):
        answer = signed.ask(world.admin, method, f"{store.scheme}://{host}/{other}/files/secret")
        assert error_triple(answer)[:2] == (400, "RequestUriMismatch")
    assert world.s3.get_object(Bucket=other, Key="files/secret")["Body"].read() == b"SECRET"


# ---- loads and creates ---------------------------------------------------------------------------------------------


def _config(person: Person, path: str, asked: str | None = None) -> dict[str, str]:
    headers = {} if asked is None else {"X-Iceberg-Access-Delegation": asked}
    answer = person.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()["config"]
    if "signer.endpoint" in found:
        assert answer.json()["remote-signing-config"] == {}
        assert not answer.json().get("storage-credentials")
    return found


@pytest.mark.parametrize(
    ("asked", "with_sts", "signs"),
    [
        (None, True, False),
        ("vended-credentials", True, False),
        ("vended-credentials, remote-signing", True, False),
        ("remote-signing", True, True),
        ("client-managed, remote-signing", True, True),
        (None, False, True),
        ("vended-credentials", False, True),
        ("remote-signing", False, True),
        ("client-managed", False, False),
        ("client-managed", True, False),
    ],
)
def test_the_header_and_the_warehouse_choose_the_delegation(
    with_sessions: SignedTable, with_own_key: SignedTable, asked: str | None, with_sts: bool, signs: bool
) -> None:
    signed = with_sessions if with_sts else with_own_key
    config = _config(signed.world.admin, signed.table.path, asked)
    assert ("signer.endpoint" in config) is signs
    assert ("s3.secret-access-key" in config) is (with_sts and not signs and asked != "client-managed")
    if signs:
        assert f"/catalog/{config['signer.endpoint']}" == signed.endpoint
        assert config["signer.uri"] == config["s3.signer.uri"] == f"{signed.world.ready.catalog_uri}/"
        assert config["s3.remote-signing-enabled"] == "true"
        assert (config["s3.signer"], config["py-io-impl"]) == (
            "S3V4RestSigner",
            "pyiceberg.io.fsspec.FsspecFileIO",
        )


def test_a_caller_without_the_right_to_read_data_is_offered_no_signatures(with_own_key: SignedTable) -> None:
    signed, world = with_own_key, with_own_key.world
    person = world.stranger()
    grants = f"/management/v1/permissions/warehouse/{signed.warehouse}/table/{signed.table.uuid}/assignments"
    given = send_until_decided(
        lambda: world.admin.post(grants, {"writes": [{"type": "describe", "user": person.id}]}), unless=204
    )
    assert given.status_code == 204, given.text
    assert "signer" not in person.get(signed.table.path).text
    assert error_triple(signed.ask(person, "GET", signed.uri("data/a")))[:2] == (403, "TableActionForbidden")


@pytest.mark.parametrize("staged", [False, True])
def test_the_creator_signs_before_and_after_the_commit(world: World, ns: str, staged: bool) -> None:
    path, name = f"{world.root}/namespaces/{ns}/tables", unique("t")
    body = {"name": name, "schema": SCHEMA, "stage-create": staged}
    answer = world.admin.post(path, body, headers=REMOTE_SIGNING).json()
    signed = _of(world, world.warehouse, f"{path}/{name}", answer)
    endpoint = f"/catalog/{answer['config']['signer.endpoint']}"
    written = signed.sign(world.admin, "PUT", signed.uri("data/first"), path=endpoint)
    assert written.send(b"rows").status_code == 200
    assert error_triple(signed.ask(world.admin, "PUT", signed.uri_of("other/x"), path=endpoint))[0] == 400
    if staged:
        # The policies are asked about the name in the path, so it must be that of the table.
        renamed = endpoint.replace(f"/{name}/", f"/{name}2/")
        assert error_triple(signed.ask(world.admin, "PUT", signed.uri("data/first"), path=renamed))[0] == 400
        # Only its creator has the files of a staged table, whatever rights another user has in the namespace.
        for person in (world.bob, world.alice, world.stranger()):
            assert signed.ask(person, "PUT", signed.uri("data/first"), path=endpoint).status_code in (400, 403)
        assert signed.ask(world.admin, "PUT", signed.uri("data/first")).status_code == 400, "it does not exist yet"
        created = world.commit(
            world.admin,
            signed.table.path,
            *_creation(answer["metadata"]),
            requirements=({"type": "assert-create"},),
        )
        assert created.status_code == 200, created.text
    assert signed.sign(world.admin, "GET", signed.uri("data/first"), path=endpoint).send().content == b"rows"
    assert signed.ask(world.alice, "PUT", signed.uri("data/first"), path=endpoint).status_code == 403


def _creation(metadata: dict[str, object]) -> list[dict[str, object]]:
    schemas, specs, orders = (metadata[each] for each in ("schemas", "partition-specs", "sort-orders"))
    assert isinstance(schemas, list) and isinstance(specs, list) and isinstance(orders, list)
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": schemas[0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": specs[0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": orders[0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]


def test_a_warehouse_without_sessions_gives_out_no_key(with_own_key: SignedTable) -> None:
    world = with_own_key.world
    for asked in ("", "vended-credentials", "remote-signing", "client-managed"):
        headers = {"X-Iceberg-Access-Delegation": asked} if asked else {}
        text = world.admin.get(with_own_key.table.path, headers=headers).text
        assert world.ready.s3.secret_key not in text
        assert world.ready.s3.access_key not in text
    refused = world.admin.get(f"{with_own_key.table.path}/credentials")
    assert error_triple(refused)[0] == 403


# ---- the record ----------------------------------------------------------------------------------------------------


def test_each_signature_is_in_the_audit_before_the_answer(signed: SignedTable) -> None:
    world = signed.world
    answer = signed.ask(world.admin, "PUT", signed.uri("data/recorded"))
    [row] = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log "
        "where convert_from(record, 'UTF8') like '%' || $1 || '%'",
        answer.headers["x-request-id"],
    )
    record = json.loads(row["record"])
    assert [each["operation"] for each in record["decisions"]] == ["sign_write", "vend_credentials"]
    assert record["detail"]["signed"] == "write"
    assert record["detail"]["keys"] == f"{signed.prefix}data/recorded"
    assert record["detail"]["level"] == "read-write-delete"
