# SPDX-License-Identifier: Apache-2.0
"""Secrets in Vault: logins, leases, outages, and the port's contract.

The tests with the fixture `store` also run against a real Vault (`real_vault.py` states the variables). The other tests
need a server whose failures they control.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.secret_stores.port import SecretStore, SecretStoreRefused, SecretStoreUnavailable, SecretUnreadable
from gateway.secret_stores.vault import VaultSecrets
from gateway.secret_stores.vault_session import AppRoleLogin, KubernetesLogin, Login, UserPassLogin, VaultAddress
from tests.support.docs_commands import block
from tests.support.servers import vault_server as own
from tests.support.servers.real_vault import real_vault
from tests.support.servers.vault_server import MOUNT, PASSWORD, VaultServer, vault_server

PLAIN = b'{"type":"s3","secret-access-key":"hunter2 \xc3\xa9\\n"}'
USERPASS = UserPassLogin("userpass", own.USER, PASSWORD)


def opened(
    url: str,
    login: Login = USERPASS,
    *,
    mount: str = MOUNT,
    timeout: float = 5.0,
    namespace: str | None = None,
) -> VaultSecrets:
    address = VaultAddress(url=url, ca_bundle=None, namespace=namespace, timeout=timeout / 2)
    return VaultSecrets(address, login, mount=mount, prefix="lakegate", timeout=timeout)


@pytest.fixture
def server() -> Iterator[VaultServer]:
    with vault_server() as running:
        yield running


@pytest.fixture
async def vault(server: VaultServer) -> AsyncIterator[VaultSecrets]:
    store = opened(server.url)
    yield store
    await store.close()


@pytest.fixture(params=["userpass", "approle", "real-userpass", "real-approle"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[SecretStore]:
    """Yield a store in the server of the tests, and in a real one if its address is given."""
    method = request.param.removeprefix("real-")
    if request.param.startswith("real"):
        with real_vault(method) as (address, login, mount):
            real = VaultSecrets(address, login, mount=mount, prefix="lakegate", timeout=address.timeout * 2)
            yield real
            await real.close()
        return
    login = USERPASS if method == "userpass" else AppRoleLogin("approle", own.ROLE_ID, own.SECRET_ID)
    with vault_server() as running:
        simulated = opened(running.url, login)
        yield simulated
        await simulated.close()


# --- the contract of the port ---


async def test_content_is_returned_as_it_was_written_until_it_is_deleted(store: SecretStore) -> None:
    await store.check()
    id, other = uuid4(), uuid4()
    await store.put(id, PLAIN)
    await store.put(other, b"{}")
    assert (await store.get(id), await store.get(other)) == (PLAIN, b"{}")
    await store.delete(id)
    with pytest.raises(SecretUnreadable, match=str(id)):
        await store.get(id)
    await store.delete(id)
    assert await store.get(other) == b"{}"


async def test_a_repeated_write_succeeds_and_other_content_is_never_replaced(store: SecretStore) -> None:
    id = uuid4()
    await store.put(id, PLAIN)
    await store.put(id, PLAIN)
    with pytest.raises(SecretStoreRefused):
        await store.put(id, b"{}")
    assert await store.get(id) == PLAIN


async def test_an_unknown_id_is_unreadable(store: SecretStore) -> None:
    with pytest.raises(SecretUnreadable):
        await store.get(uuid4())


# --- logins and leases ---


async def test_kubernetes_login_reads_the_service_account_token_again_each_time(
    server: VaultServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    store = opened(server.url, KubernetesLogin("kubernetes", own.ROLE, str(file)))
    with pytest.raises(SecretStoreRefused) as missing:
        await store.check()
    assert str(file) in missing.value.message
    file.write_text("an expired token\n")
    with pytest.raises(SecretStoreRefused, match="auth/kubernetes"):
        await store.check()
    file.write_text(own.SERVICE_ACCOUNT_TOKEN + "\n")
    other = opened(server.url, KubernetesLogin("kubernetes", own.ROLE, str(file)))
    await other.check()
    await other.put(uuid4(), PLAIN)


async def test_another_mount_of_the_auth_method_and_a_namespace_are_used(server: VaultServer) -> None:
    store = opened(server.url, UserPassLogin("people", own.USER, PASSWORD), namespace="data/lake")
    await store.check()
    assert server.count("POST", "auth/people/login") == 1
    assert server.namespaces == {"data/lake"}


async def test_an_expired_token_is_replaced_by_one_login(vault: VaultSecrets, server: VaultServer) -> None:
    ids = [uuid4() for _ in range(6)]
    for id in ids:
        await vault.put(id, PLAIN)
    assert server.count("POST", "/login") == 1
    server.expire_tokens()
    assert await asyncio.gather(*map(vault.get, ids)) == [PLAIN] * 6
    assert server.count("POST", "/login") == 2


async def test_a_token_is_renewed_before_its_lease_ends(server: VaultServer) -> None:
    now = time.monotonic()
    store = opened(server.url)
    store._session._clock = lambda: now
    id = uuid4()
    await store.put(id, PLAIN)
    now += 2399
    await store.get(id)
    assert server.count("POST", "renew-self") == 0
    now += 2
    await store.get(id)
    await store.get(id)
    assert (server.count("POST", "renew-self"), server.count("POST", "/login")) == (1, 1)
    # At the end of its maximum lifetime a renewal gives no time: the session logs in.
    for token in server.tokens.values():
        token.last_end = time.monotonic() + 1
    now += 2401
    await store.get(id)
    assert (server.count("POST", "renew-self"), server.count("POST", "/login")) == (2, 2)


async def test_a_wrong_password_is_not_tried_for_each_request(server: VaultServer) -> None:
    store = opened(server.url, UserPassLogin("userpass", own.USER, "wrong password"))
    for _ in range(5):
        with pytest.raises(SecretStoreRefused):
            await store.get(uuid4())
    assert server.count("POST", "/login") == 1, "Vault locks users out after refused logins"


# --- the check at the start ---


@pytest.mark.parametrize("mount", ["nothing", "old"])
async def test_a_missing_engine_and_one_of_version_1_fail_the_check(server: VaultServer, mount: str) -> None:
    server.policy["old/*"] = ("create", "read", "delete")
    with pytest.raises(SecretStoreRefused, match=f"'{mount}' .KV2__SECRET_MOUNT"):
        await opened(server.url, mount=mount).check()


@pytest.mark.parametrize(
    ("path", "left", "named"),
    [
        ("data", ("read",), "create on lake/data/lakegate/\\*"),
        ("data", ("create",), "read on lake/data/lakegate/\\*"),
        ("metadata", ("read",), "delete on lake/metadata/lakegate/\\*"),
    ],
)
async def test_a_missing_right_is_named_by_the_check(
    vault: VaultSecrets, server: VaultServer, path: str, left: tuple[str, ...], named: str
) -> None:
    server.policy[f"{MOUNT}/{path}/lakegate/*"] = left
    with pytest.raises(SecretStoreRefused, match=named):
        await vault.check()


async def test_a_right_that_was_taken_away_is_a_refusal_and_no_missing_secret(
    vault: VaultSecrets, server: VaultServer
) -> None:
    id = uuid4()
    await vault.put(id, PLAIN)
    server.policy.clear()
    for call in (vault.get(id), vault.put(uuid4(), PLAIN), vault.delete(id)):
        with pytest.raises(SecretStoreRefused):
            await call


async def test_an_engine_that_was_disabled_is_a_refusal_and_no_missing_secret(
    vault: VaultSecrets, server: VaultServer
) -> None:
    await vault.put(id := uuid4(), PLAIN)
    del server.mounts[MOUNT]
    with pytest.raises(SecretStoreRefused):
        await vault.get(id)


def test_the_documented_policy_is_the_one_of_the_tests() -> None:
    policy = block("docs/secrets.md", f'path "{MOUNT}/data').text
    rules = re.findall(r'^path "([^"]+)" \{ capabilities = \[([^]]+)\] \}$', policy, re.MULTILINE)
    assert {path: tuple(re.findall(r"\w+", rights)) for path, rights in rules} == own.POLICY


# --- outages ---


async def test_a_sealed_vault_is_an_outage_and_serves_again_when_unsealed(
    vault: VaultSecrets, server: VaultServer
) -> None:
    await vault.put(id := uuid4(), PLAIN)
    server.sealed = True
    for call in (vault.get(id), vault.put(uuid4(), PLAIN), vault.delete(id), vault.check()):
        with pytest.raises(SecretStoreUnavailable):
            await call
    server.sealed = False
    assert await vault.get(id) == PLAIN
    assert len(server.secrets) == 1


async def test_single_errors_and_lost_answers_are_retried(vault: VaultSecrets, server: VaultServer) -> None:
    server.errors = 2
    await vault.put(first := uuid4(), PLAIN)
    # The write takes effect and its answer is lost: the repeated write finds the content.
    server.lost_answers = 1
    await vault.put(second := uuid4(), PLAIN)
    server.lost_answers = 2
    assert [await vault.get(first), await vault.get(second)] == [PLAIN, PLAIN]
    server.lost_answers = 1
    await vault.delete(first)
    assert len(server.secrets) == 1


async def test_an_address_without_a_server_and_a_silent_server_are_outages(server: VaultServer) -> None:
    nowhere = opened("http://127.0.0.1:1")
    with pytest.raises(SecretStoreUnavailable):
        await nowhere.check()
    server.delay = 0.4
    silent = opened(server.url, timeout=0.2)
    with pytest.raises(SecretStoreUnavailable):
        await silent.get(uuid4())


async def test_a_redirect_is_not_followed_because_the_token_would_leave(
    vault: VaultSecrets, server: VaultServer
) -> None:
    await vault.put(id := uuid4(), PLAIN)
    with vault_server() as other:
        server.redirect = other.url
        for call in (vault.get(id), vault.put(uuid4(), PLAIN), vault.delete(id)):
            with pytest.raises(SecretStoreUnavailable):
                await call
        assert other.requests == []
    server.redirect = None
    assert await vault.get(id) == PLAIN


async def test_a_secret_without_our_field_is_an_error(vault: VaultSecrets, server: VaultServer) -> None:
    await vault.put(id := uuid4(), PLAIN)
    server.secrets[f"lakegate/{id}"]["data"] = {"other": "value"}
    with pytest.raises(SecretStoreUnavailable):
        await vault.get(id)
    server.secrets[f"lakegate/{id}"]["deleted"] = True
    with pytest.raises(SecretUnreadable):
        await vault.get(id)


# --- secrets in messages ---


async def test_no_error_and_no_log_contains_a_secret(
    server: VaultServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    store = opened(server.url)
    await store.put(id := uuid4(), PLAIN)
    [token] = server.tokens
    server.echo = f"the request had the token {token} and the password {PASSWORD}"
    found: list[str] = []
    server.policy.clear()
    with pytest.raises(SecretStoreRefused) as refused:
        await store.get(id)
    found += [repr(refused.value), refused.value.reason]
    server.password = "changed"
    server.expire_tokens()
    with pytest.raises(SecretStoreRefused) as login:
        await store.get(id)
    assert "invalid username or password" in login.value.reason
    found += [repr(login.value), login.value.reason, json.dumps(str(login.value.__cause__))]
    server.sealed = True
    with pytest.raises(SecretStoreUnavailable) as sealed:
        await opened(server.url).get(id)
    found += [repr(sealed.value), repr(vars(sealed.value)), repr(USERPASS), caplog.text, *capfd.readouterr()]
    for text in found:
        assert PASSWORD not in text and token not in text and "hunter2" not in text


@pytest.mark.usefixtures("server")
async def test_variables_of_the_vault_command_are_not_read(
    server: VaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("VAULT_TOKEN", "a token of the operator"), ("VAULT_ADDR", "http://127.0.0.1:1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    await opened(server.url).check()
    assert server.count("POST", f"auth/userpass/login/{own.USER}") == 1
