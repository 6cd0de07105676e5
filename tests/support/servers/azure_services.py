# SPDX-License-Identifier: Apache-2.0
"""HTTP servers on loopback with the documented answers of Entra ID, of delegation keys and of the file service."""

from __future__ import annotations

import base64
import json

from tests.support.servers.loopback import Reply, Request


def entra_id(request: Request) -> Reply:
    """Answer as Entra ID.

    The token: https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow, "First case:
    Access token request with a shared secret". The client library reads the addresses of the tenant first (OpenID
    Connect Discovery 1.0, section 4).
    """
    tenant = request.path.split("/")[1]
    if request.path.endswith("/.well-known/openid-configuration"):
        base = f"https://{request.headers['host']}/{tenant}"
        document = {
            "issuer": f"{base}/v2.0",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "token_endpoint": f"{base}/oauth2/v2.0/token",
        }
        return 200, {"content-type": "application/json"}, json.dumps(document).encode()
    answer = {"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": "entra-token"}
    return 200, {"content-type": "application/json"}, json.dumps(answer).encode()


KEY = b"k" * 32


def delegation_key(request: Request) -> Reply:
    """Answer as "Get User Delegation Key".

    https://learn.microsoft.com/en-us/rest/api/storageservices/get-user-delegation-key, "Response body".
    """
    text = request.body.decode()
    start, expiry = (text.partition(f"<{name}>")[2].partition("<")[0] for name in ("Start", "Expiry"))
    answer = (
        '\ufeff<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>'
        "<SignedOid>11111111-1111-1111-1111-111111111111</SignedOid>"
        "<SignedTid>22222222-2222-2222-2222-222222222222</SignedTid>"
        f"<SignedStart>{start}</SignedStart><SignedExpiry>{expiry}</SignedExpiry>"
        "<SignedService>b</SignedService><SignedVersion>2022-11-02</SignedVersion>"
        f"<Value>{base64.b64encode(KEY).decode()}</Value></UserDelegationKey>"
    )
    return 200, {"content-type": "application/xml"}, answer.encode()
