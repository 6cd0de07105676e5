# SPDX-License-Identifier: Apache-2.0
"""The requests that are measured on any Iceberg REST catalog, and the data that they need.

Everything is created and dropped by the protocol alone, so that two catalogs get the same requests on equal data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import httpx

from tests.bench.generator import Sent
from tests.bench.seeding import SCHEMA

COMMITTED = 64
_AT_ONCE = 8
_DROPS = 4
_DELEGATION = "X-Iceberg-Access-Delegation"
_OWN_KEYS = {_DELEGATION: "client-managed"}
_VENDED = {_DELEGATION: "vended-credentials"}
_SECRETS = ("s3.secret-access-key", "s3.session-token", "gcs.oauth2.token", "adls.sas-token")
SET_PROPERTIES = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"bench":"{n}"}}]}'

CONFIG = "config"
EXISTS = "table exists"
LIST_100 = "list 100 tables"
LIST_1000 = "list 1,000 tables"
LOAD = "loadTable"
VENDED = "loadTable, vended"
CREATE = "create table"
COMMIT = f"commit, {COMMITTED} tables"
NAMES = (CONFIG, EXISTS, LIST_100, LIST_1000, LOAD, VENDED, CREATE, COMMIT)


class CatalogError(Exception):
    """A catalog cannot be measured. The message names the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The URL of a catalog (without `/v1`), the bearer token if it needs one, and the warehouse if it has several."""

    name: str
    url: str
    token: str | None = None
    warehouse: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def config_url(self) -> str:
        """Return the URL of the configuration."""
        query = f"?{urlencode({'warehouse': self.warehouse})}" if self.warehouse else ""
        return f"{self.url.rstrip('/')}/v1/config{query}"


class Prepared:
    """The data of the measured requests in one catalog: namespaces of its own, with tables."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.client = httpx.Client(headers=catalog.headers, trust_env=False, timeout=120)
        self._name = f"bench_{uuid4().hex[:12]}"
        self._made: dict[str, str] = {}
        self.namespaces = f"{catalog.url.rstrip('/')}/v1/{self._prefix()}namespaces"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return self._catalog.headers

    def _prefix(self) -> str:
        """Return the prefix of the catalog's paths, empty or with a slash at its end.

        Raises:
            CatalogError: the catalog is not reachable, or refuses the token or the warehouse.
        """
        url = self._catalog.config_url
        try:
            answer = self.client.get(url)
        except httpx.TransportError as error:
            raise CatalogError(f"no catalog answers at {url}: {error}. Is it running, and is the URL right?") from None
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            given = "refuses the token" if self._catalog.token else "needs a token"
            raise CatalogError(
                f"{self._catalog.url} {given} ({answer.status_code}): give a valid one with TARGET_TOKEN"
            )
        if not answer.is_success:
            warehouse = self._catalog.warehouse
            advice = f"is {warehouse!r} the name of a warehouse?" if warehouse else "name one with TARGET_WAREHOUSE"
            raise CatalogError(
                f"{url} answered {answer.status_code}: {answer.text[:300]}\nIf it is the warehouse: {advice}"
            )
        try:
            return prefix_of(answer.json())
        except ValueError as error:
            raise CatalogError(f"{url} is no configuration of an Iceberg REST catalog: {error}") from None

    def requests(self, names: Iterable[str]) -> dict[str, Sent]:
        """Create the data of the named requests, and return these requests.

        Raises:
            CatalogError: the catalog refused to create something.
        """
        wanted, found = set(names), dict[str, Sent]()
        headers = self._catalog.headers
        if CONFIG in wanted:
            found[CONFIG] = Sent(method="GET", url=self._catalog.config_url, headers=headers)
        if wanted & {EXISTS, LOAD, VENDED}:
            table = f"{self._filled('one', ['t'])}/t"
            found[EXISTS] = Sent(method="HEAD", url=table, headers=headers)
            found[LOAD] = Sent(method="GET", url=table, headers=headers | self._plain(table))
            found[VENDED] = Sent(method="GET", url=table, headers=headers | _VENDED)
        for name, count in ((LIST_100, 100), (LIST_1000, 1_000)):
            if name in wanted:
                found[name] = self._list(count)
        if CREATE in wanted:
            body = json.dumps({"name": "created_{n}", "schema": SCHEMA})
            url = self._filled("new", [])
            found[CREATE] = Sent(method="POST", url=url, headers=headers | _json(), body=body)
        if COMMIT in wanted:
            url = self._filled("commit", [f"t{number:03}" for number in range(COMMITTED)])
            found[COMMIT] = Sent(
                method="POST", url=f"{url}/t{{k}}", headers=headers | _json(), body=SET_PROPERTIES, vary=COMMITTED
            )
        return {name: found[name] for name in NAMES if name in wanted}

    def id_of(self, table: str) -> str:
        """Return the id of the row of a table with this URL. Only Lakegate and Lakekeeper send it."""
        tables, name = table.rsplit("/", 1)
        listed = self.client.get(tables, params={"returnUuids": "true"}).raise_for_status().json()
        ids = zip(listed["identifiers"], listed["table-uuids"], strict=True)
        return next(str(id) for each, id in ids if each["name"] == name)

    def refusal(self, name: str, sent: Sent) -> str | None:
        """Send a request once. Return the reason why it cannot be measured, or None after the expected answer."""
        url, body = sent.url.replace("{k}", "000"), sent.body and sent.body.replace("{n}", "probe")
        answer = self.client.request(sent.method, url, headers=sent.headers, content=body)
        if not answer.is_success:
            return f"{answer.status_code} {answer.text[:200]}"
        if name == VENDED and not has_credentials(answer.json()):
            return "a table without storage credentials"
        return None

    def _plain(self, table: str) -> dict[str, str]:
        """Return the header of a load without credentials. A catalog that refuses its value gets no such header."""
        return _OWN_KEYS if self.client.get(table, headers=_OWN_KEYS).is_success else {}

    def _list(self, count: int) -> Sent:
        url = self._filled(f"wide{count}", [f"t{number:05}" for number in range(count)])
        for listed in (url, f"{url}?pageSize={count}"):
            if len(self.client.get(listed).json().get("identifiers", [])) == count:
                return Sent(method="GET", url=listed, headers=self._catalog.headers)
        raise CatalogError(f"{self._catalog.name} does not send a list of {count:,} tables in one answer")

    def _filled(self, suffix: str, tables: list[str]) -> str:
        """Create a namespace with tables, once. Return the URL of its tables."""
        namespace = f"{self._name}_{suffix}"
        if namespace in self._made:
            return self._made[namespace]
        self._post(self.namespaces, {"namespace": [namespace], "properties": {}})
        url = self._made[namespace] = f"{self.namespaces}/{namespace}/tables"
        _together(lambda name: self._post(url, {"name": name, "schema": SCHEMA}), tables)
        return url

    def _post(self, url: str, body: dict[str, Any]) -> None:
        # Catalogs refuse a creation while others are in progress: 409, 429 or 503.
        for seconds in (0.2, 1.0, None):
            answer = self.client.post(url, json=body)
            if answer.is_success:
                return
            if seconds is None or answer.status_code < httpx.codes.CONFLICT:
                raise CatalogError(
                    f"{self._catalog.name} answered POST {url} with {answer.status_code}: {answer.text[:300]}"
                )
            time.sleep(seconds)

    def remove(self) -> list[str]:
        """Drop everything that was created here. Return the names of the namespaces that could not be dropped."""
        return [namespace for namespace in self._made if not self._drop(namespace)]

    def _drop(self, namespace: str) -> bool:
        """Drop a namespace with its tables. Return True if it is gone."""
        url = f"{self.namespaces}/{namespace}"
        # A busy catalog refuses some of the drops.
        for _ in range(_DROPS):
            names = self._tables(url)
            if names is None:
                return False
            _together(lambda name: self._drop_table(f"{url}/tables/{quote(name, safe='')}"), names)
            if self.client.delete(url).is_success:
                return True
        return False

    def _tables(self, namespace: str) -> list[str] | None:
        """Return the names of all tables of a namespace, page by page; None if the catalog refuses to list them."""
        names: list[str] = []
        token = ""
        while True:
            answer = self.client.get(f"{namespace}/tables", params={"pageToken": token, "pageSize": "1000"})
            if not answer.is_success:
                return None
            listed = answer.json()
            names += [each["name"] for each in listed.get("identifiers", [])]
            if not (token := listed.get("next-page-token") or ""):
                return names

    def _drop_table(self, url: str) -> None:
        if not self.client.delete(url, params={"purgeRequested": "true"}).is_success:
            self.client.delete(url)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def prefix_of(config: Any) -> str:
    """Return the prefix of paths that a configuration names, empty or with a slash at its end.

    Raises:
        ValueError: it is not the configuration of a catalog.
    """
    if not isinstance(config, dict) or not {"defaults", "overrides"} & config.keys():
        raise ValueError("it has neither defaults nor overrides")
    merged = {**(config.get("defaults") or {}), **(config.get("overrides") or {})}
    prefix = str(merged.get("prefix") or "").strip("/")
    return f"{prefix}/" if prefix else ""


def has_credentials(loaded: Any) -> bool:
    """Return True if the answer of a load contains storage credentials, in the list or in the older configuration."""
    config = loaded.get("config") or {}
    return bool(loaded.get("storage-credentials")) or any(key.startswith(_SECRETS) for key in config)


def _json() -> dict[str, str]:
    return {"Content-Type": "application/json"}


def _together(work: Callable[[str], None], items: list[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(work, items))
