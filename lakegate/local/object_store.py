# SPDX-License-Identifier: Apache-2.0
"""Run SeaweedFS as an object store with temporary credentials, configured as restrictively as it allows.

Three settings are necessary. A trust policy for all principals would let a vended credential assume the role again,
without its session policy. Without the JWT keys in ``security.toml`` the HTTP port of the filer reads and writes every
object without authentication. Without ``-disableHttp`` the other HTTP ports do so, too.

The gRPC ports stay open to local accounts: this store is for a developer's machine, not for production.
"""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path
from typing import Any

import msgspec

from lakegate.local.children import Child, Children, ChildSpec, until_answering
from lakegate.local.ports import GRPC_OFFSET, LOOPBACK, Ports
from lakegate.local.ready import Secrets, write_private

BUCKET = "lakegate"
REGION = "us-east-1"
GATEWAY_USER = "arn:aws:iam::000000000000:user/gateway"
VEND_ROLE = "arn:aws:iam::000000000000:role/VendRole"

_START_SECONDS = 30.0


def installed() -> Path | None:
    """Return the path of ``weed``: the program that the wheel installed, or else the one on the PATH. None if there is
    neither.
    """
    found = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    return None if found is None else Path(found)


def sockets_left_behind(ports: Ports) -> list[Path]:
    """Return the Unix sockets that the store creates in addition to its gRPC ports.

    Their path is not configurable, and the store does not remove all of them.
    """
    by_part = {
        "s3": ports.s3,
        "master": ports.store_master,
        "volume": ports.store_volume,
        "filer": ports.store_filer,
        "admin": ports.store_admin,
    }
    directory = Path("/tmp")  # noqa: S108 - the program's choice; its file mode excludes other accounts
    return [directory / f"seaweedfs-{part}-grpc-{port + GRPC_OFFSET}.sock" for part, port in by_part.items()]


class ObjectStore:
    """One SeaweedFS server with one bucket, the gateway's user, and the role for vended keys.

    Session policies confine vended keys to a part of the role's rights.
    """

    def __init__(self, binary: Path, data: Path, sockets: Path, ports: Ports, secrets: Secrets) -> None:
        self._binary = binary
        self._data = data
        self._configuration = data / "conf"
        self._sockets = sockets
        self._ports = ports
        self._secrets = secrets
        self.url = f"http://{LOOPBACK}:{ports.s3}"

    async def start(self, children: Children) -> Child:
        """Write the configuration, start the store and create the bucket. Return when the store serves."""
        for directory in (self._data, self._configuration, self._data / "files"):
            directory.mkdir(mode=0o700, exist_ok=True)
        self._write_configuration()
        ports = self._ports
        options = {
            "dir": self._data / "files",
            "ip": LOOPBACK,
            "ip.bind": LOOPBACK,
            "bucket": BUCKET,
            "disableHttp": "true",
            "s3.port": ports.s3,
            "s3.config": self._configuration / "s3.json",
            "s3.iam.config": self._configuration / "iam.json",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",
            "s3.localSocket": self._sockets / "s3.sock",
            "webdav": "false",
            "admin.ui": "false",
            "master.telemetry": "false",
            "master.port": ports.store_master,
            "volume.port": ports.store_volume,
            "filer.port": ports.store_filer,
            "admin.port": ports.store_admin,  # the admin server's gRPC port is open even if its web pages are off
            "filer.localSocket": self._sockets / "filer.sock",
        }
        arguments = [f"-{name}={value}" for name, value in options.items()]
        server = await children.start(
            ChildSpec(
                name="object-store",
                argv=[
                    str(self._binary),
                    "-logtostderr=true",
                    f"-config_dir={self._configuration}",
                    "mini",
                    *arguments,
                ],
                env={"HOME": str(self._data), "TMPDIR": str(self._sockets)},
                # The object store also reads configuration from its working directory.
                cwd=self._configuration,
            )
        )
        await until_answering(server, ports.s3, "/healthz", timeout=_START_SECONDS)
        return server

    def profile(self) -> dict[str, str | bool]:
        """Return the storage profile of a warehouse in this store, without ``bucket`` and ``key-prefix``."""
        return {
            "type": "s3",
            "region": REGION,
            "endpoint": self.url,
            "flavor": "s3-compat",
            "path-style-access": True,
            "sts-enabled": True,
            "sts-role-arn": VEND_ROLE,
        }

    def _write_configuration(self) -> None:
        secrets = self._secrets
        credentials = [{"accessKey": secrets.s3_access_key, "secretKey": secrets.s3_secret_key}]
        identities = {"identities": [{"name": "gateway", "credentials": credentials, "actions": ["Admin"]}]}
        write_private(self._configuration / "s3.json", msgspec.json.encode(identities))
        write_private(self._configuration / "iam.json", msgspec.json.encode(_iam(secrets.s3_signing_key)))
        sections = ("jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read")
        toml = "\n".join(
            f'[{section}]\nkey = "{key}"\n' for section, key in zip(sections, secrets.store_jwt_keys, strict=True)
        )
        write_private(self._configuration / "security.toml", toml.encode())


def _iam(signing_key: str) -> dict[str, Any]:
    """Return the store's IAM configuration: one role, for the gateway's user only, with rights on the bucket only."""
    trust = {"Effect": "Allow", "Principal": {"AWS": [GATEWAY_USER]}, "Action": ["sts:AssumeRole"]}
    reach = {
        "Effect": "Allow",
        "Action": ["s3:*"],
        "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
    }
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "seaweedfs-sts",
            "signingKey": signing_key,
        },
        "policy": {"defaultEffect": "Deny"},
        "roles": [
            {
                "roleName": "VendRole",
                "roleArn": VEND_ROLE,
                "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
                "attachedPolicies": ["WarehouseAll"],
            }
        ],
        "policies": [{"name": "WarehouseAll", "document": {"Version": "2012-10-17", "Statement": [reach]}}],
    }
