# SPDX-License-Identifier: Apache-2.0
"""Send requests to the object store that the gateway signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World

REMOTE_SIGNING = {"X-Iceberg-Access-Delegation": "remote-signing"}


@dataclass(frozen=True)
class Signed:
    """A signed request."""

    method: str
    uri: str
    headers: dict[str, str]

    def send(
        self, content: bytes = b"", *, uri: str | None = None, more: dict[str, str] | None = None
    ) -> httpx.Response:
        """Send the request, or one with another URI or further headers."""
        return httpx.request(
            self.method, uri or self.uri, headers={**self.headers, **(more or {})}, content=content, trust_env=False
        )


@dataclass(frozen=True)
class SignedTable:
    """A table, and the warehouse whose gateway signs requests to its files."""

    world: World
    warehouse: str
    table: Table

    @property
    def endpoint(self) -> str:
        """Return the path that signs for this table by its id."""
        return f"/catalog/v1/signer/{self.warehouse}/tabular-id/{self.table.uuid}/v1/aws/s3/sign"

    @property
    def prefix(self) -> str:
        """Return the common prefix of the keys of the table, with a trailing slash."""
        return self.table.location.removeprefix(f"s3://{self.world.bucket}/") + "/"

    def uri(self, name: str = "", query: str = "") -> str:
        """Return the URI of a file of the table."""
        return self.uri_of(self.prefix + name) + (f"?{query}" if query else "")

    def uri_of(self, key: str) -> str:
        """Return the URI of any key of the bucket."""
        return f"{self.world.ready.s3.endpoint}/{self.world.bucket}/{key}"

    def list_uri(self, prefix: str | None = None, **more: str) -> str:
        """Return the URI that lists the keys with this prefix, by default those of the table."""
        url = httpx.URL(
            f"{self.world.ready.s3.endpoint}/{self.world.bucket}",
            params={"list-type": "2", "prefix": self.prefix if prefix is None else prefix, **more},
        )
        return str(url)

    def ask(self, person: Person, method: str, uri: str, *, path: str | None = None, **more: Any) -> httpx.Response:
        """Ask the gateway to sign a request."""
        body = {"region": self.world.ready.s3.region, "method": method, "uri": uri, "headers": {}, **more}
        return person.post(path or self.endpoint, body)

    def sign(self, person: Person, method: str, uri: str, **more: Any) -> Signed:
        """Return a signed request; fail if the gateway refuses it."""
        answer = self.ask(person, method, uri, **more)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return Signed(method, found["uri"], {name: ", ".join(values) for name, values in found["headers"].items()})
