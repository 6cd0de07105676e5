# SPDX-License-Identifier: Apache-2.0
"""Build policies into an OPA bundle: one reproducible file, which can be signed.

The bundle of the gateway's OPA contains the rules and the policy data, so OPA refuses to change them by its data API.
The bundle of the OPA beside Trino contains the bridge, the policies for Trino's access control (`policies/trino/`).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, RSAKey

from gateway.opa.policy_files import package_of
from gateway.opa.syntax import InvalidPolicies

_TRINO = "trino/"
_TESTS = "_test.rego"
_DATA = "data.json"
_SHORTEST_SECRET = 32


class BundleName(StrEnum):
    """The two bundles: for the OPA of the gateway, and for the OPA beside Trino."""

    GATEWAY = "gateway"
    TRINO = "trino"


class SigningAlgorithm(StrEnum):
    """The signature algorithms that this module writes and OPA verifies."""

    RS256 = "RS256"
    ES256 = "ES256"
    HS256 = "HS256"


class InvalidSigningKey(Exception):
    """The key does not fit the algorithm. The message does not contain the key."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs bundles. `key` is a private key in PEM form, or a secret for HS256."""

    algorithm: SigningAlgorithm
    key: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raise InvalidSigningKey if the key does not fit the algorithm."""
        self.sign(b"{}")

    def sign(self, payload: bytes) -> str:
        """Return a compact JSON web signature of `payload`. Raises InvalidSigningKey."""
        try:
            key = self._imported()
            return jws.serialize_compact({"alg": self.algorithm}, payload, key, algorithms=[self.algorithm])
        except (ValueError, TypeError, JoseError):
            raise InvalidSigningKey(
                f"the signing key is not a key for {self.algorithm}. {_WANTED[self.algorithm]}"
            ) from None

    @property
    def fingerprint(self) -> str:
        """Return a short digest of the algorithm and the key, by which a replaced key is recognized."""
        return hashlib.sha256(f"{self.algorithm}\0{self.key}".encode()).hexdigest()[:8]

    def _imported(self) -> RSAKey | ECKey | OctKey:
        match self.algorithm:
            case SigningAlgorithm.RS256:
                key: RSAKey | ECKey | OctKey = RSAKey.import_key(self.key)
            case SigningAlgorithm.ES256:
                key = ECKey.import_key(self.key)
            case SigningAlgorithm.HS256:
                if len(self.key.strip()) < _SHORTEST_SECRET or "PRIVATE KEY" in self.key:
                    raise ValueError
                key = OctKey.import_key(self.key.strip())
        if not key.is_private:
            raise ValueError
        return key


_WANTED = {
    SigningAlgorithm.RS256: "Create one with `openssl genrsa -out key.pem 3072`.",
    SigningAlgorithm.ES256: "Create one with `openssl ecparam -name prime256v1 -genkey -noout -out key.pem`.",
    SigningAlgorithm.HS256: f"It must be a secret of at least {_SHORTEST_SECRET} characters, and no private key.",
}


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """A bundle file. The revision is a digest of its rules and data; OPA writes it to its decision log.

    `entity_tag` is equal in every process for the same content and key.
    """

    content: bytes = field(repr=False)
    revision: str
    entity_tag: str


def policy_bundle(files: Mapping[str, bytes], name: BundleName, key: SigningKey | None = None) -> PolicyBundle:
    """Return the bundle `name` of these policies, without tests. Equal files give equal bytes, unless ES256 signs them.

    `files` come from :func:`gateway.opa.policy_files.policy_files`.

    Raises:
        InvalidPolicies: the files contain no policies for this bundle, policy data that is not JSON, or a path that is
            too long for an archive.
    """
    packed = {
        file: _canonical(json_of(file, content)) if file.endswith(_DATA) else content
        for file, content in sorted(files.items())
        if file.startswith(_TRINO) == (name is BundleName.TRINO)
        and not file.startswith("schemas/")
        and not file.endswith(_TESTS)
    }
    rules = [(file, content) for file, content in packed.items() if file.endswith(".rego")]
    if not rules:
        raise InvalidPolicies(f"the directory contains no policies for {name.title()}; install Lakegate again.")
    roots = {_root(package_of(file, content)) for file, content in rules}
    if name is BundleName.GATEWAY:
        roots.add("policy_data")
    digest = hashlib.sha256()
    for file, content in packed.items():
        digest.update(f"{file}\0{len(content)}\0".encode() + content)
    revision = digest.hexdigest()[:32]
    manifest = {"revision": revision, "roots": sorted(roots), "rego_version": 1}
    packed = {".manifest": _canonical(manifest), **packed}
    if key is not None:
        packed[".signatures.json"] = _signatures(packed, key)
    return PolicyBundle(_archive(packed), revision, f"{revision}.{key.fingerprint}" if key else revision)


def json_of(file: str, content: bytes) -> Any:
    """Return the value of a file of policy data.

    Raises:
        InvalidPolicies: the file is not JSON.
    """

    def refuse(text: str) -> NoReturn:
        raise ValueError(f"{text} is not a JSON number")

    try:
        return json.loads(content, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise InvalidPolicies(f"{file}:{error.lineno}: the file is not valid JSON: {error.msg}; correct it.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidPolicies(f"{file}: the file is not valid JSON: {error}; correct it.") from None


def _root(package: str) -> str:
    """Return the bundle root that contains a package.

    `system` alone is no root, because OPA keeps data of its own below it.
    """
    parts = package.split(".")
    return "/".join(parts[:2]) if parts[0] == "system" else parts[0]


def _canonical(value: Any) -> bytes:
    """Return a JSON document in the form that OPA hashes: sorted keys, no spaces, and Go's escapes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def _signatures(files: Mapping[str, bytes], key: SigningKey) -> bytes:
    """Return the content of `.signatures.json`.

    See https://www.openpolicyagent.org/docs/management-bundles#signing. Structured files are in their canonical form
    already, so the hash of each file is that of its bytes.
    """
    hashes = [
        {"name": file, "hash": hashlib.sha256(content).hexdigest(), "algorithm": "SHA-256"}
        for file, content in sorted(files.items())
    ]
    return _canonical({"signatures": [key.sign(_canonical({"files": hashes}))]})


def _archive(files: Mapping[str, bytes]) -> bytes:
    """Return a compressed archive without modification times and owners.

    Raises InvalidPolicies if a path is too long.
    """
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            try:
                archive.addfile(entry, io.BytesIO(content))
            except ValueError:
                raise InvalidPolicies(f"{name}: an archive cannot contain so long a path; shorten it.") from None
    return packed.getvalue()
