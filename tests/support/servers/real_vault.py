# SPDX-License-Identifier: Apache-2.0
"""A secrets engine, policy and login in a real Vault, for tests. They are removed afterwards.

The tests run if `TEST_VAULT_ADDR` and `TEST_VAULT_TOKEN` are set. The token needs the right to enable secrets engines
and auth methods: use a server that is only for tests, such as `vault server -dev`. `TEST_VAULT_CACERT` is optional.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from gateway.secret_stores.vault_session import AppRoleLogin, Login, UserPassLogin, VaultAddress


@contextmanager
def real_vault(method: str) -> Iterator[tuple[VaultAddress, Login, str]]:
    """Yield (address, login, mount) for the auth method `userpass` or `approle`. Skip the test without an address."""
    url, root = os.environ.get("TEST_VAULT_ADDR"), os.environ.get("TEST_VAULT_TOKEN")
    if not url or not root:
        pytest.skip("TEST_VAULT_ADDR and TEST_VAULT_TOKEN name no real Vault")
    import hvac

    bundle = os.environ.get("TEST_VAULT_CACERT")
    client = hvac.Client(url=url, token=root, verify=bundle or True)
    name = f"lakegate-test-{uuid4().hex}"
    policy = (
        f'path "{name}/data/lakegate/*" {{ capabilities = ["create", "read"] }}\n'
        f'path "{name}/metadata/lakegate/*" {{ capabilities = ["delete"] }}\n'
    )
    client.sys.enable_secrets_engine("kv", path=name, options={"version": "2"})
    client.sys.enable_auth_method(method, path=name)
    client.sys.create_or_update_policy(name, policy)
    try:
        login: Login
        if method == "userpass":
            password = uuid4().hex
            client.auth.userpass.create_or_update_user("gateway", password, policies=[name], mount_point=name)
            login = UserPassLogin(name, "gateway", password)
        else:
            client.auth.approle.create_or_update_approle("gateway", token_policies=[name], mount_point=name)
            role = client.auth.approle.read_role_id("gateway", mount_point=name)["data"]["role_id"]
            secret = client.auth.approle.generate_secret_id("gateway", mount_point=name)["data"]["secret_id"]
            login = AppRoleLogin(name, role, secret)
        yield VaultAddress(url=url, ca_bundle=bundle, namespace=None, timeout=5.0), login, name
    finally:
        client.sys.disable_secrets_engine(name)
        client.sys.disable_auth_method(name)
        client.sys.delete_policy(name)
