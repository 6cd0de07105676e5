# SPDX-License-Identifier: Apache-2.0
"""Load tables from the catalog over HTTP: for the service itself, or for a user by token exchange.

Spark's Iceberg client silently ignores `read-restrictions` (row filters and masks). So for a read that must apply them,
the pipeline itself requests the load response. Every request has a timeout. Tokens are never part of an error message.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx2
import msgspec

from lakegate.restrictions.literals import NestedField
from lakegate.spark.config import OnBehalfOf, RestCatalog
from lakegate.spark.errors import GovernedReadRefused, RequestRefused

_SECONDS: Final = 60.0
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
_RETRIED: Final = frozenset({429, 503})
_KINDS_OF_TOKENS: Final = "urn:ietf:params:oauth:token-type:"
_NAMESPACE_SEPARATOR: Final = "%1F"

NO_TABLE: Final = "NoSuchTableException"
NO_NAMESPACE: Final = "NoSuchNamespaceException"

Identifier = tuple[str, ...]
"""The namespace parts of a table, then its name."""


class Schema(msgspec.Struct, frozen=True, rename="kebab"):
    """One schema of a table."""

    fields: tuple[NestedField, ...]
    schema_id: int = 0


class Snapshot(msgspec.Struct, frozen=True, rename="kebab"):
    """One snapshot of a table. `summary` contains the operation."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    schema_id: int | None = None
    summary: dict[str, str] = {}

    @property
    def operation(self) -> str:
        """Return the operation of the snapshot; an empty text if it has none."""
        return self.summary.get("operation", "")


class Metadata(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts of a table's metadata that governed reads need."""

    table_uuid: str
    current_schema_id: int
    schemas: tuple[Schema, ...]
    current_snapshot_id: int | None = None
    snapshots: tuple[Snapshot, ...] = ()
    properties: dict[str, str] = {}

    @property
    def schema(self) -> Schema:
        """Return the current schema."""
        return self._schema(self.current_schema_id)

    def current(self) -> Snapshot | None:
        """Return the current snapshot; None if the table has none."""
        return self.snapshot(self.current_snapshot_id)

    def snapshot(self, id: int | None) -> Snapshot | None:
        """Return the snapshot with this id."""
        return next((each for each in self.snapshots if each.snapshot_id == id), None)

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """Return the schema with which the snapshot is read: the one that it records, or else the current one."""
        return self.schema if snapshot.schema_id is None else self._schema(snapshot.schema_id)

    def _schema(self, id: int) -> Schema:
        found = next((each for each in self.schemas if each.schema_id == id), None)
        if found is None:
            raise GovernedReadRefused(f"the metadata of the table has no schema {id}")
        return found


class LoadedTable(msgspec.Struct, frozen=True, rename="kebab"):
    """The part of a load response that is not credentials. `read_restrictions` is JSON; an empty object if absent."""

    metadata: Metadata
    read_restrictions: msgspec.Raw = msgspec.Raw(b"{}")


class CatalogClient:
    """HTTP requests to one warehouse as one service."""

    def __init__(self, catalog: RestCatalog, verify: ssl.SSLContext | bool = True) -> None:
        """Create the client. `verify` is the TLS context; True trusts the authorities of the system."""
        self._catalog = catalog
        self._http = httpx2.Client(timeout=_SECONDS, trust_env=False, verify=verify)
        self._prefix: str | None = None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def service_token(self) -> str:
        """Return a token of the service: the configured one, or a new one from the identity provider."""
        catalog = self._catalog
        if catalog.token is not None:
            return catalog.token
        client, _, secret = (catalog.credential or "").partition(":")
        form = {"grant_type": "client_credentials"} | ({"scope": catalog.scope} if catalog.scope else {})
        basic = base64.b64encode(f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()).decode()
        answer = self._send("POST", catalog.token_endpoint or "", {"Authorization": f"Basic {basic}"}, data=form)
        return str(_member(answer, "access_token"))

    def exchange(self, user: OnBehalfOf) -> str:
        """Return a token that names both the user and the service (RFC 8693).

        Raises:
            GovernedReadRefused: the gateway refused the exchange, for example without `delegate`.
        """
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": user.token or _named(user.user or ""),
            "subject_token_type": f"{_KINDS_OF_TOKENS}{'access_token' if user.token else 'jwt'}",
            "scope": "catalog",
        }
        url = f"{self._catalog.uri.rstrip('/')}/v1/oauth/tokens"
        answer = self._send("POST", url, self._authorization(self.service_token()), data=form)
        return str(_member(answer, "access_token"))

    def load(self, table: Identifier, token: str, role: str | None = None) -> LoadedTable:
        """Load the table as the holder of `token`. If `role` is given, the holder acts only as this role.

        Raises:
            RequestRefused: the gateway refused the load, for example because no such table is visible to the holder.
            GovernedReadRefused: any other failure.
        """
        headers = self._authorization(token) | ({"x-assume-role": role} if role else {})
        namespace = _NAMESPACE_SEPARATOR.join(quote(part, safe="") for part in table[:-1])
        path = f"/v1/{self._warehouse_id(headers)}/namespaces/{namespace}/tables/{quote(table[-1], safe='')}"
        answer = self._send("GET", self._catalog.uri.rstrip("/") + path, headers)
        try:
            return msgspec.json.decode(answer.content, type=LoadedTable)
        except msgspec.MsgspecError as error:
            raise GovernedReadRefused(f"the load response of {'.'.join(table)} is invalid: {error}") from None

    def load_own(self, table: Identifier) -> LoadedTable | None:
        """Load a table as the service itself. Return None if the service can see no such table."""
        try:
            return self.load(table, self.service_token())
        except RequestRefused as refused:
            if refused.kind not in (NO_TABLE, NO_NAMESPACE):
                raise
            return None

    def verify_service(self) -> None:
        """Request the configuration of the warehouse again. Raises GovernedReadRefused if it is refused to the
        service.
        """
        self._prefix = None
        self._warehouse_id(self._authorization(self.service_token()))

    def has_created(self, table_id: str) -> bool:
        """Return True if the service created the table: then its ownership was granted by itself.

        Table properties would prove nothing, because each principal with `modify` can write them. Ownership that
        another principal granted proves nothing either: that principal keeps access. Return False if the service may
        not read the grants.
        """
        try:
            return self._has_granted_itself(table_id)
        except RequestRefused:
            return False

    def _has_granted_itself(self, table_id: str) -> bool:
        base = self._catalog.uri.rstrip("/").removesuffix("/catalog") + "/management/v1"
        headers = self._authorization(self.service_token())
        id = _member(self._send("GET", f"{base}/whoami", headers), "id")
        path = f"{base}/warehouse/{self._warehouse_id(headers)}/table/{table_id}/grants"
        page: str | None = None
        while True:
            query = "" if page is None else f"?pageToken={quote(page, safe='')}"
            answer = self._send("GET", path + query, headers)
            for grant in _member(answer, "grants"):
                if (grant["privilege"], grant["principal"], grant["granted-by"]) == ("ownership", {"user": id}, id):
                    return True
            page = answer.json().get("next-page-token")
            if page is None:
                return False

    def grant_select(self, table_id: str, role: str) -> None:
        """Grant a role `select` on a table that the service may grant. A repeated call changes nothing."""
        base = self._catalog.uri.rstrip("/").removesuffix("/catalog")
        headers = self._authorization(self.service_token())
        path = f"/management/v1/permissions/warehouse/{self._warehouse_id(headers)}/table/{table_id}/assignments"
        held = self._send("GET", base + path, headers)
        grant = {"type": "select", "role": role}
        if grant not in _member(held, "assignments"):
            self._send("POST", base + path, headers, json={"writes": [grant]})

    def _warehouse_id(self, headers: Mapping[str, str]) -> str:
        """Return the path prefix of the warehouse, which is its id. The first call sends a request with `headers`."""
        if self._prefix is None:
            url = f"{self._catalog.uri.rstrip('/')}/v1/config?warehouse={quote(self._catalog.warehouse, safe='')}"
            answer = self._send("GET", url, headers)
            defaults, overrides = _member(answer, "defaults"), _member(answer, "overrides")
            self._prefix = quote(str({**defaults, **overrides}.get("prefix", "")), safe="")
        return self._prefix

    @staticmethod
    def _authorization(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def _send(self, method: str, url: str, headers: Mapping[str, str], **body: Any) -> httpx2.Response:
        """Send a request. Repeat it while the server is too busy. Other failures raise `GovernedReadRefused`."""
        for pause in (*_PAUSES, None):
            try:
                answer = self._http.request(method, url, headers=headers, **body)
            except httpx2.HTTPError as error:
                raise GovernedReadRefused(f"{method} {url.partition('?')[0]}: {type(error).__name__}") from None
            if answer.status_code not in _RETRIED or pause is None:
                break
            time.sleep(pause)
        if answer.is_success:
            return answer
        kind, reason = _refusal(answer)
        raise RequestRefused(f"{method} {url.partition('?')[0]}: {answer.status_code}: {reason}", kind)


def _refusal(answer: httpx2.Response) -> tuple[str, str]:
    """Return (type, message) of an error response of the catalog or of the token endpoint. The type is empty for the
    latter.
    """
    try:
        document = answer.json()
    except ValueError:
        return "", "no message"
    if not isinstance(document, dict):
        return "", "no message"
    error = document.get("error")
    if isinstance(error, dict):
        return str(error.get("type", "")), str(error.get("message"))[:1000]
    return "", str(document.get("error_description") or error)[:1000]


def _member(answer: httpx2.Response, name: str) -> Any:
    try:
        return answer.json()[name]
    except (ValueError, KeyError, TypeError):
        raise GovernedReadRefused(f"{answer.request.url.path}: the answer has no member {name}") from None


def _named(user: str) -> str:
    """Return an unsigned JWT whose subject is a user of the service's own provider."""
    parts = ({"alg": "none"}, {"sub": user})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join([*encoded, ""])
