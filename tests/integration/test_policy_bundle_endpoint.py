# SPDX-License-Identifier: Apache-2.0
"""The bundles that the gateway serves, on a real OPA: login, grant, signature, polling, and the start of both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.opa.bundle import BundleName, SigningAlgorithm, SigningKey, policy_bundle
from gateway.opa.policy_files import policy_files
from lakegate.local.ready import Ready
from tests.support.load.kills import Killable
from tests.support.servers.certificates import authority
from tests.support.servers.opa_bundles import GATEWAY, key_pair, over_tls, polling, until
from tests.support.servers.opa_program import source
from tests.support.stack.world import World

pytestmark = [pytest.mark.integration, pytest.mark.servers]

POLICIES = Path(__file__).parents[2] / "policies"
PATH = "/management/v1/policy-bundle"
MIRA = "oidc~mira"
DENIED = ["contractor_outside_hours"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a policy repository that contains a list of contractors."""
    data = tmp_path / "repository" / "policies" / "policy_data" / "contractors"
    shutil.copytree(POLICIES / "policy_data" / "contractors", data)
    return tmp_path / "repository"


def listed(repository: Path, *users: str) -> None:
    """Write the deny list of the repository."""
    file = repository / "policies" / "policy_data" / "contractors" / "data.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"users": list(users)}))


def granted(world: World) -> None:
    """Let the client `etl` read the policies by one grant."""
    body = {"writes": [{"type": "policy_reader", "user": world.etl.id}]}
    assert world.admin.post("/management/v1/permissions/server/assignments", body).status_code == 204


@dataclass(frozen=True)
class SignedBy:
    """A key that signs bundles, and the file of its private part."""

    private: str
    public: str
    file: Path

    @property
    def setting(self) -> dict[str, str]:
        """Return the setting of a gateway that signs with it."""
        return {"POLICY_SIGNING_KEY_FILE": str(self.file)}


@dataclass(frozen=True)
class Login:
    """The token endpoint over TLS, and the certificate of its authority."""

    url: str
    authority: Path


@pytest.fixture
def login(stopped_gateway: Killable, tmp_path: Path) -> Iterator[Login]:
    ours = authority(tmp_path)
    with over_tls(stopped_gateway.ready.token_endpoint, ours.server("127.0.0.1")) as url:
        yield Login(url, ours.file)


def config(ready: Ready, login: Login, public: str, **bundle: Any) -> dict[str, Any]:
    """Return the configuration of an OPA that logs in as `etl` and polls the gateway every second."""
    user = ready.users["etl"]
    oauth = {"token_url": login.url, "client_id": user.client_id, "client_secret": user.client_secret}
    polled = {"min_delay_seconds": 1, "max_delay_seconds": 1}
    gateway = ready.catalog_uri.removesuffix("/catalog")
    loaded = {"service": "lakegate", "resource": f"{PATH}/gateway", "polling": polled, "signing": {"keyid": "policies"}}
    return {
        "services": {
            "lakegate": {
                "url": gateway,
                "tls": {"ca_cert": str(login.authority)},
                "credentials": {"oauth2": oauth},
            }
        },
        "bundles": {"gateway": {**loaded, **bundle}},
        "keys": {"policies": {"algorithm": "RS256", "key": public}},
    }


@pytest.fixture
def keys(tmp_path: Path) -> list[SignedBy]:
    """Return two keys that sign bundles."""
    made = []
    for number in range(2):
        private, public = key_pair("RS256")
        (tmp_path / f"{number}.pem").write_text(private)
        made.append(SignedBy(private, public, tmp_path / f"{number}.pem"))
    return made


@pytest.fixture
def world(stopped_gateway: Killable, repository: Path, keys: list[SignedBy]) -> Iterator[World]:
    """Start the gateway with the repository and the first key. Nobody may read the policies."""
    with stopped_gateway.serving(POLICY_DIRECTORY=str(repository), **keys[0].setting) as world:
        yield world


def test_opa_logs_in_and_polls_signed_bundles_of_the_gateway(
    stopped_gateway: Killable, world: World, login: Login, repository: Path, keys: list[SignedBy], tmp_path: Path
) -> None:
    gateway = stopped_gateway
    listed(repository, MIRA)
    with polling(tmp_path / "opa", config(gateway.ready, login, keys[0].public)) as opa:
        until(lambda: "Bundle load failed" in opa.log, lambda: opa.log)
        assert opa.decisions(MIRA) is None, "OPA got policies without the privilege"
        granted(world)
        until(lambda: opa.codes(MIRA) == DENIED, lambda: opa.log)
        listed(repository)
        until(lambda: opa.codes(MIRA) == [], lambda: opa.log)
        gateway.kill()
        gateway.start(POLICY_DIRECTORY=str(repository), **keys[1].setting)
        until(lambda: "failed to verify" in opa.log, lambda: opa.log)
        listed(repository, MIRA)
        failures = opa.log.count("failed to verify")
        until(lambda: opa.log.count("failed to verify") > failures + 1, lambda: opa.log)
        assert opa.codes(MIRA) == [], "OPA took policies with the signature of another key"
        gateway.kill()
        gateway.start(POLICY_DIRECTORY=str(repository), **keys[0].setting)
        until(lambda: opa.codes(MIRA) == DENIED, lambda: opa.log)


def test_bundle_answers_304_and_stays_held_until_the_directory_changes(
    stopped_gateway: Killable, repository: Path
) -> None:
    with stopped_gateway.serving(POLICY_DIRECTORY=str(repository)) as world:
        _answers_304(world, repository)


def _answers_304(world: World, repository: Path) -> None:
    assert world.etl.get(f"{PATH}/gateway").status_code == 403
    granted(world)
    first = world.etl.get(f"{PATH}/gateway")
    assert first.status_code == 200, first.text
    assert first.headers["content-type"] == "application/gzip"
    assert first.content == policy_bundle(policy_files(source(repository)), BundleName.GATEWAY).content
    known = {"If-None-Match": first.headers["etag"]}
    same = world.etl.get(f"{PATH}/gateway", headers=known)
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
    assert world.bob.get(f"{PATH}/gateway", headers=known).status_code == 403, "a tag is no right"
    trino = world.etl.get(f"{PATH}/trino", headers=known)
    assert trino.content == policy_bundle(policy_files(None), BundleName.TRINO).content
    listed(repository, MIRA)
    changed = world.etl.get(f"{PATH}/gateway", headers=known)
    assert (changed.status_code, changed.headers["etag"] != first.headers["etag"]) == (200, True)
    unknown = world.etl.get(f"{PATH}/other")
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "PolicyBundleNotFound")
    (repository / "policies" / "policy_data" / "contractors" / "data.json").write_text("{")
    broken = world.etl.get(f"{PATH}/gateway", headers=known)
    assert (broken.status_code, broken.json()["error"]["type"]) == (503, "PoliciesInvalid")


def test_gateway_starts_without_decisions_of_its_opa_and_a_seeded_bundle_ends_the_circle(
    stopped_gateway: Killable, world: World, login: Login, repository: Path, keys: list[SignedBy], tmp_path: Path
) -> None:
    gateway = stopped_gateway
    granted(world)
    kept = tmp_path / "opa" / "kept"
    settings = config(gateway.ready, login, keys[0].public, persist=True) | {"persistence_directory": str(kept)}
    with polling(tmp_path / "opa", settings) as opa:
        gateway.kill()
        gateway.begin(OPA__URL=opa.url, OPA__TOKEN=GATEWAY, POLICY_DIRECTORY=str(repository), **keys[0].setting)
        until(lambda: _status(world, "/health") is not None)
        for path in ("/management/v1/project-list", f"{PATH}/gateway", "/catalog/v1/config?warehouse=none"):
            assert _status(world, path) == 503, path
        until(lambda: "Bundle load failed" in opa.log, lambda: opa.log)
        assert opa.decisions(MIRA) is None
        opa.kill()
        seed = kept / "bundles" / "gateway" / "bundle.tar.gz"
        seed.parent.mkdir(parents=True, exist_ok=True)
        key = SigningKey(SigningAlgorithm.RS256, keys[0].private)
        seed.write_bytes(policy_bundle(policy_files(source(repository)), BundleName.GATEWAY, key).content)
        opa.start()
        until(lambda: _status(world, "/management/v1/project-list") == 200, lambda: opa.log)
        listed(repository, MIRA)
        until(lambda: opa.codes(MIRA) == DENIED, lambda: opa.log)


def _status(world: World, path: str) -> int | None:
    """Return the status of a request of the administrator, None without an answer."""
    try:
        return world.admin.get(path).status_code
    except httpx.TransportError:
        return None
