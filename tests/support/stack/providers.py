# SPDX-License-Identifier: Apache-2.0
"""Identity providers for single tests: a discovery document and keys over HTTP, and tokens with any claims."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.servers.loopback import Reply, Request, as_json, serving

AUDIENCE = "lakegate-tests"


def b64(data: bytes) -> str:
    """Return data in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk(key: rsa.RSAPrivateKey, kid: str) -> dict[str, str]:
    """Return the public half as a JSON Web Key."""
    numbers = key.public_key().public_numbers()
    size = (numbers.n.bit_length() + 7) // 8
    return {
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": kid,
        "n": b64(numbers.n.to_bytes(size, "big")),
        "e": "AQAB",
    }


def signed(key: rsa.RSAPrivateKey, claims: dict[str, Any], **header: Any) -> str:
    """Return a JWT under RS256 with any header and claims."""
    fields = {"alg": "RS256", "typ": "JWT", **header}
    head = f"{b64(json.dumps(fields).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{head}.{b64(key.sign(head.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class StubProvider:
    """An identity provider on a loopback port.

    `requested` holds the fetched paths; `down` makes it return 500.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.kid = "k1"
        self.key = rsa.generate_private_key(65537, 2048)
        self.calls: list[str] = []
        self.down = False

    def rotate(self, kid: str) -> None:
        """Publish another key and withdraw the previous one."""
        self.key, self.kid = rsa.generate_private_key(65537, 2048), kid

    def document(self, path: str) -> dict[str, Any]:
        """Return the served document."""
        if path.endswith("/openid-configuration"):
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [jwk(self.key, self.kid)]}

    def claims(self, subject: str, **changes: Any) -> dict[str, Any]:
        """Return the claims of a valid token; a change to `...` omits the claim."""
        now = time.time()
        good = {"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 600} | changes
        return {name: value for name, value in good.items() if value is not ...}

    def token(self, subject: str, *, kid: str | None = None, **changes: Any) -> str:
        """Return a token of this provider."""
        return signed(self.key, self.claims(subject, **changes), kid=kid or self.kid)


@contextmanager
def stub_provider() -> Iterator[StubProvider]:
    """Run a provider until the end of the block."""

    def answer(request: Request) -> Reply:
        provider.calls.append(request.path)
        return as_json(500 if provider.down else 200, provider.document(request.path))

    with serving(answer) as service:
        provider = StubProvider(service.url)
        yield provider
