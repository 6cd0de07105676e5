# SPDX-License-Identifier: Apache-2.0
"""Programs that use Lakekeeper's Python client. They run in its environment and import nothing else of this project.

`python pylakekeeper_programs.py NAME` reads the arguments of a function as a JSON object from standard input. It prints
the result, or the error, as one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from pylakekeeper import (  # type: ignore[import-not-found]  # it is in an environment of its own
    Client,
    ClientCredentials,
    ConflictError,
    LakekeeperHTTPError,
    NotFoundError,
    StaticToken,
)


def connect(at: dict[str, Any]) -> Any:
    """Return a client, with the user's token or with its client credentials."""
    auth = StaticToken(at["token"]) if "token" in at else ClientCredentials(**at["login"])
    return Client(at["base"], at["warehouse"], auth, project_id=at.get("project"))


def whoami(at: dict[str, Any]) -> Any:
    """Return the catalog user of the token."""
    with connect(at) as client:
        return client.whoami()


def renewal(at: dict[str, Any]) -> Any:
    """Return (ids before and after the token was dropped, whether the token is a new one)."""
    with connect(at) as client:
        before, first = client.whoami()["id"], client.auth.auth_header()
        client.auth.invalidate()
        time.sleep(0.01)
        return [before, client.whoami()["id"], first != client.auth.auth_header()]


def tables(at: dict[str, Any], namespace: str) -> Any:
    """Create, load, list and drop generic tables; return what each step gave."""
    found: dict[str, Any] = {}
    with connect(at) as client:
        generic = client.generic_tables
        made = generic.create(namespace, "a", format="lance", doc="vectors", properties={"k": "v"})
        found["made"] = made.table.model_dump()
        found["loaded"] = generic.load(namespace, "a").table.model_dump()
        chosen = generic.create(namespace, "b", format="dataset", base_location=made.location + "-chosen")
        found["chosen"] = chosen.location == made.location + "-chosen"
        generic.create(namespace, "c", format="delta")
        # Three pages.
        found["listed"] = [
            [list(each.namespace), each.name, each.format, each.id is not None]
            for each in generic.list(namespace, page_size=1)
        ]
        found["again"] = _status(lambda: generic.create(namespace, "a", format="lance"), ConflictError)
        generic.drop(namespace, "c")
        found["dropped"] = _status(lambda: generic.load(namespace, "c"), NotFoundError)
        found["absent"] = _status(lambda: generic.drop(namespace, "c"), NotFoundError)
        found["left"] = [each.name for each in generic.list(namespace)]
    return found


def load(at: dict[str, Any], namespace: str, table: str) -> Any:
    """Load one generic table with credentials; return its location and whether keys came with it."""
    with connect(at) as client:
        found = client.generic_tables.load(namespace, table, vended=True)
        return [found.location, "s3.access-key-id" in found.credentials]


def objects(at: dict[str, Any], namespace: str, table: str) -> Any:
    """Write, read, list and delete objects of a table with vended credentials."""
    with connect(at) as client:
        with contextlib.suppress(ConflictError):
            client.generic_tables.create(namespace, table, format="dataset")
        found = client.generic_tables.load(namespace, table, vended=True)
        store = found.objects()
        store.put("notes/a.md", b"one")
        store.put("b.md", b"two")
        listed = [store.list(), store.list("notes/")]
        read = store.get("notes/a.md").decode()
        store.delete("notes/a.md")
        return {
            "listed": listed,
            "read": read,
            "left": store.list(),
            "lance": sorted(found.lance_storage_options),
            "fsspec": sorted(found.fsspec_kwargs),
            "expires": found.expires_at is not None and not found.is_expired and not found.expires_within(60),
        }


def iceberg(at: dict[str, Any], namespace: str) -> Any:
    """Create, fill and read an Iceberg table with the PyIceberg catalog of the client."""
    import pyarrow as pa

    with connect(at) as client:
        catalog = client.iceberg_catalog(**{"header.X-Iceberg-Access-Delegation": "vended-credentials"})
        rows = pa.table({"id": [1, 2]})
        table = catalog.create_table(f"{namespace}.events", schema=rows.schema)
        table.append(rows)
        read = catalog.load_table(f"{namespace}.events").scan().to_arrow().to_pydict()
        return {"rows": sorted(read["id"]), "tables": [list(each) for each in catalog.list_tables(namespace)]}


class _Letters:
    """Embed a text as its number of letters `a` and `b`."""

    model = "letters"

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]


def memory(at: dict[str, Any], namespace: str) -> Any:
    """Keep entries and their vectors (Lance) in generic tables."""
    from pylakekeeper.agents import MemoryStore  # type: ignore[import-not-found]  # as above

    with connect(at) as client:
        store = MemoryStore(client, namespace, embed=_Letters())
        store.ensure_tables()
        store.ensure_tables()
        store.put("m/first.md", "aaa")
        store.put("m/second.md", "bbb")
        hits = [hit.path for hit in store.search("bb", k=1)]
        store.delete("m/second.md")
        return {
            "hits": hits,
            "left": store.list(),
            "text": store.get("m/first.md"),
            "after": [hit.path for hit in store.search("bb", k=5)],
        }


def skills(at: dict[str, Any], namespace: str) -> Any:
    """Propose, approve, reject and revoke skills. The proposer is the id of the caller."""
    from pylakekeeper.agents import SkillStore

    with connect(at) as client:
        store = SkillStore(client, namespace)
        store.ensure_tables()
        store.propose("greet", "Say hello.", description="Greets")
        store.propose("insult", "Be rude.")
        for each in store.list_proposed():
            if each.name == "greet":
                store.approve(each)
            else:
                store.reject(each, "rude")
        found = [store.list(), store.load("greet").proposer, [name for name, _ in store.list_rejected()]]
        store.revoke("greet")
        return [*found, store.list()]


def _status(call: Callable[[], Any], error: type[Exception]) -> int:
    try:
        call()
    except error as raised:
        return int(getattr(raised, "status_code", 0))
    return 0


def main() -> None:
    """Run the function that the command line names."""
    try:
        answer = {"result": globals()[sys.argv[1]](**json.load(sys.stdin))}
    except LakekeeperHTTPError as raised:
        answer = {"error": type(raised).__name__, "status": raised.status_code, "text": str(raised)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
