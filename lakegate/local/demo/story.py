# SPDX-License-Identifier: Apache-2.0
"""The trials of the demonstration, in order. A trial sends a request and shows whether it was permitted.

Each function returns the trials about one subject.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from lakegate.local.demo import keys
from lakegate.local.demo.board import Observation, Trial
from lakegate.local.demo.world import (
    CALL_SECONDS,
    CONTRACT_GOLD,
    GOLD,
    OTHER_GOLD,
    SHARED_SILVER,
    SILVER,
    SetupRefused,
    World,
    clock,
    minutes_left,
    names,
    register,
    same_status,
)
from lakegate.local.ready import OpaAccess

NOT_FOUND_IN_SPARK = ("TABLE_OR_VIEW_NOT_FOUND",)
STORE_REFUSES = ("Status Code: 403", "Access Denied", "AccessDenied")
LONGEST_LIFE_MINUTES = 60.5


def strangers(world: World) -> list[Trial]:
    """Return the trials of a caller without a token, and of a caller that has a token and no grant."""

    async def no_token() -> Observation:
        return same_status(await register(world.people["nobody"], world.lake.warehouse), 401)

    async def no_grant() -> Observation:
        return same_status(await register(world.people["carol"], world.lake.warehouse), 404, "NoSuchWarehouseException")

    return [
        Trial("nobody", "config without a token", "401", no_token),
        Trial("carol", "config of a warehouse without any grant", "404, as for an absent warehouse", no_grant),
    ]


def one_gold_table(world: World) -> list[Trial]:
    """Return the trials of `analyst`, who has one grant: its table is visible, all other objects are hidden."""
    analyst, lake = world.people["analyst"], world.lake

    async def namespaces() -> Observation:
        body = await analyst.must("GET", f"catalog/v1/{lake.prefix}/namespaces")
        found = sorted(".".join(levels) for levels in body["namespaces"])
        return Observation(found == ["gold"], ", ".join(found) or "none")

    async def tables() -> Observation:
        found = names((await analyst.must("GET", f"{lake.namespace('gold')}/tables"))["identifiers"])
        return Observation(found == ["route_punctuality"], ", ".join(found) or "none")

    async def hidden_list() -> Observation:
        reply = await analyst.call("GET", f"{lake.namespace('silver')}/tables")
        return same_status(reply, 404, "NoSuchNamespaceException")

    async def hidden_table() -> Observation:
        hidden, absent = await world.load("analyst", SILVER), await world.load("analyst", "silver.no_such_table")
        distinguishable = hidden.message.replace("flights", "…") != absent.message.replace("no_such_table", "…")
        seen = same_status(hidden, 404, "NoSuchTableException")
        alike = "differs from an absent one" if distinguishable else "the same answer as for an absent one"
        return Observation(
            seen.as_expected and str(hidden) == str(absent) and not distinguishable, f"{hidden}, {alike}"
        )

    async def count() -> Observation:
        mine, theirs = await world.count("analyst", GOLD), await world.count("etl", GOLD)
        return Observation(mine is not None and mine == theirs, f"{mine} rows, {theirs} by etl")

    async def silver_by_spark() -> Observation:
        return await world.statement_refused("analyst", f"SELECT count(*) FROM {SILVER}", NOT_FOUND_IN_SPARK)  # noqa: S608 - a constant

    return [
        Trial("analyst", "list namespaces", "gold only", namespaces),
        Trial("analyst", "list tables of gold", "route_punctuality only", tables),
        Trial("analyst", f"read {GOLD} with Spark", "the same number of rows as for etl", count),
        Trial("analyst", "list tables of silver", "404", hidden_list),
        Trial("analyst", f"load {SILVER}", "404, the same answer as for an absent table", hidden_table),
        Trial("analyst", f"read {SILVER} with Spark", "no such table", silver_by_spark),
    ]


def no_writing(world: World) -> list[Trial]:
    """Return the trials in which `analyst`, which may only read, tries to write: the catalog or the store must
    refuse.
    """
    analyst, lake = world.people["analyst"], world.lake

    async def unchanged(action: Any) -> Observation:
        before = await world.metadata_location("etl", GOLD)
        seen: Observation = await action()
        if await world.metadata_location("etl", GOLD) != before:
            return Observation(False, f"{seen.text}, but the table has changed")
        return seen

    async def commit() -> Observation:
        change = {"action": "set-properties", "updates": {"owned-by": "analyst"}}
        reply = await analyst.call("POST", lake.table(GOLD), {"requirements": [], "updates": [change]})
        return same_status(reply, 403)

    async def insert() -> Observation:
        statement = f"INSERT INTO {GOLD} SELECT * FROM {GOLD} LIMIT 1"  # noqa: S608 - a constant
        return await world.statement_refused("analyst", statement, STORE_REFUSES)

    async def drop() -> Observation:
        return same_status(await analyst.call("DELETE", lake.table(GOLD)), 403)

    return [
        Trial("analyst", f"commit to {GOLD} over REST", "403, no change", lambda: unchanged(commit)),
        Trial("analyst", f"drop {GOLD} over REST", "403, no change", lambda: unchanged(drop)),
        Trial(
            "analyst",
            f"INSERT INTO {GOLD} with Spark",
            "refused by the store, no change",
            lambda: unchanged(insert),
        ),
    ]


async def vended_key(world: World) -> tuple[keys.Planted, list[Trial]]:
    """Return (planted objects, trials) for the storage key that is vended to `analyst` for one gold table.

    The trials call the object store, not the gateway. The caller removes the planted objects.
    """
    key = await world.key_for("analyst", GOLD)
    planted = await asyncio.to_thread(keys.plant, world.ready.s3, key)
    s3, sts = keys.client("s3", key), keys.client("sts", key)
    role = str(world.ready.s3.profile["sts-role-arn"])

    def get(location: str) -> Any:
        bucket, name = keys.bucket_and_key(location)
        return s3.get_object(Bucket=bucket, Key=name)["Body"].read()

    def bytes_read(content: bytes) -> tuple[bool, str]:
        return bool(content), f"{len(content)} bytes"

    def listed(answer: dict[str, Any]) -> tuple[bool, str]:
        found = [entry["Key"] for entry in answer.get("Contents", [])]
        return bool(found) and all(
            name.startswith(f"{key.prefix}/") for name in found
        ), f"{len(found)} objects, all inside"

    def no_buckets(answer: dict[str, Any]) -> tuple[bool, str]:
        found = [bucket["Name"] for bucket in answer.get("Buckets", [])]
        return not found, ", ".join(found) or "an empty list"

    own, other, silver = [await world.metadata_location("etl", ident) for ident in (GOLD, OTHER_GOLD, SILVER)]
    _, silver_key = keys.bucket_and_key(silver)
    outside = silver_key.rsplit("/metadata/", 1)[0] + "/"

    def trial(tried: str, expected: str, attempt: Any) -> Trial:
        return Trial("analyst's key", tried, expected, attempt)

    no = "refused"
    return planted, [
        trial(f"get metadata of {GOLD}", "allowed", lambda: keys.answered(lambda: get(own), bytes_read)),
        trial(
            f"list {GOLD}",
            "its own objects",
            lambda: keys.answered(lambda: s3.list_objects_v2(Bucket=key.bucket, Prefix=f"{key.prefix}/"), listed),
        ),
        trial(f"get metadata of {OTHER_GOLD}", no, lambda: keys.refused(lambda: get(other))),
        trial(f"get metadata of {SILVER}", no, lambda: keys.refused(lambda: get(silver))),
        trial(
            "get from a sibling prefix",
            no,
            lambda: keys.refused(lambda: s3.get_object(Bucket=planted.bucket, Key=planted.sibling)),
        ),
        trial(
            f"put an object into {GOLD}",
            no,
            lambda: keys.refused(lambda: s3.put_object(Bucket=key.bucket, Key=f"{key.prefix}/data/x", Body=b"x")),
        ),
        trial(
            f"delete an object of {GOLD}",
            no,
            lambda: keys.refused(lambda: s3.delete_object(Bucket=planted.bucket, Key=planted.inside)),
        ),
        trial(
            f"list {SILVER}",
            no,
            lambda: keys.refused(lambda: s3.list_objects_v2(Bucket=key.bucket, Prefix=outside)),
        ),
        trial("list the whole bucket", no, lambda: keys.refused(lambda: s3.list_objects_v2(Bucket=key.bucket))),
        trial("list buckets", "an empty list", lambda: keys.answered(s3.list_buckets, no_buckets)),
        trial(
            "assume the gateway's role again",
            no,
            lambda: keys.refused(lambda: sts.assume_role(RoleArn=role, RoleSessionName="again")),
        ),
    ]


async def steward(world: World) -> list[Trial]:
    """Return the trials in which `steward` grants `analyst` a silver table and revokes the grant.

    Both must take effect at the next request.
    """
    lake, giver, taker = world.lake, world.people["steward"], world.people["analyst"]
    table = await lake.table_id(giver, SHARED_SILVER)

    async def give() -> Observation:
        return same_status(await lake.assign(giver, "table", table, "select", taker), 204)

    async def read() -> Observation:
        mine, theirs = await world.count("analyst", SHARED_SILVER), await world.count("etl", SHARED_SILVER)
        await world.key_for("analyst", SHARED_SILVER)
        return Observation(mine is not None and mine == theirs, f"{mine} rows, {theirs} by etl")

    async def not_hers_to_give() -> Observation:
        other = await lake.table_id(world.people["etl"], OTHER_GOLD)
        reply = await lake.assign(giver, "table", other, "select", taker)
        return Observation(reply.status in (403, 404), str(reply))

    async def revoke_and_load() -> Observation:
        reply = await lake.revoke(giver, "table", table, "select", taker)
        acknowledged = time.monotonic()
        loaded = await world.load("analyst", SHARED_SILVER, vend=True)
        elapsed = (time.monotonic() - acknowledged) * 1000
        text = f"{reply.status}; {elapsed:.0f} ms later loadTable: {loaded}"
        return Observation(reply.status == 204 and loaded.status in (403, 404), text)

    async def read_again() -> Observation:
        statement = f"SELECT count(*) FROM {SHARED_SILVER}"  # noqa: S608 - a constant
        return await world.statement_refused("analyst", statement, NOT_FOUND_IN_SPARK)

    async def still_out() -> Observation:
        key = world.vended_keys[SHARED_SILVER]
        left = minutes_left(key.expires_at_ms)
        return Observation(
            0 < left <= LONGEST_LIFE_MINUTES, f"{key.access_key} ends {clock(key.expires_at_ms)}, in {left:.0f} min"
        )

    return [
        Trial("steward", f"grant analyst select on {SHARED_SILVER}", "204", give),
        Trial("steward", f"grant analyst select on {OTHER_GOLD}", "403 or 404: no right to grant it", not_hers_to_give),
        Trial("analyst", f"read {SHARED_SILVER} with Spark, fresh session", "all rows, at once", read),
        Trial("steward", f"revoke it; analyst loads {SHARED_SILVER}", "refused at once", revoke_and_load),
        Trial("analyst", f"read {SHARED_SILVER} with Spark, fresh session", "no such table", read_again),
        Trial("analyst", f"key for {SHARED_SILVER} issued before the revocation", "expires within one hour", still_out),
    ]


class Hours:
    """The working hours of contractors. They are data of the Rego policy, which OPA's operator replaces at run time."""

    def __init__(self, opa: OpaAccess, http: httpx2.AsyncClient, contractor: str) -> None:
        self._opa = opa
        self._http = http
        self._contractor = contractor
        self._original: Any = None

    async def remember(self) -> None:
        """Read the current hours, for `restore`."""
        self._original = (await self._request("GET")).json()["result"]

    async def close(self) -> None:
        """Set hours that last one hour and begin about eight hours from now."""
        start = (datetime.now(UTC) + timedelta(hours=8)).hour
        await self._put(f"{start:02}:00", f"{start + 1:02}:00")

    async def open(self) -> None:
        """Set hours that include every time of every day."""
        await self._put("00:00", "24:00")

    async def restore(self) -> None:
        """Write back the hours that `remember` read."""
        if self._original is not None:
            await self._request("PUT", self._original)

    async def _put(self, start: str, end: str) -> None:
        days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
        hours = {"timezone": "UTC", "weekdays": days, "from": start, "until": end}
        await self._request("PUT", {"users": [self._contractor], "roles": [], "hours": hours})

    async def _request(self, method: str, body: Any = None) -> httpx2.Response:
        answer = await self._http.request(
            method,
            f"{self._opa.url}/v1/data/policy_data/contractors",
            json=body,
            headers={"Authorization": f"Bearer {self._opa.token}"},
            timeout=CALL_SECONDS,
        )
        if not answer.is_success:
            raise SetupRefused(f"OPA answered {answer.status_code} to {method} of the contractors' hours")
        return answer


def contractor(world: World, hours: Hours) -> list[Trial]:
    """Return the trials of `contractor`. OpenFGA always allows a gold table; the Rego rule allows it only within the
    hours.
    """

    async def outside() -> Observation:
        await hours.close()
        reply = await world.load("contractor", CONTRACT_GOLD, vend=True)
        return Observation(reply.status == 403 and "hours" in reply.message, f"{reply}: {reply.message}")

    async def inside() -> Observation:
        await hours.open()
        reply = await world.load("contractor", CONTRACT_GOLD, vend=True)
        key = keys.vended(reply.body) if reply.status == 200 else None
        return Observation(key is not None, f"{reply.status}, {'with' if key else 'without'} a key")

    async def inside_by_spark() -> Observation:
        mine, theirs = await world.count("contractor", CONTRACT_GOLD), await world.count("etl", CONTRACT_GOLD)
        return Observation(mine is not None and mine == theirs, f"{mine} rows, {theirs} by etl")

    return [
        Trial("contractor", f"load {CONTRACT_GOLD} outside the hours", "403 with the reason", outside),
        Trial("contractor", "the same after the hours include the current time", "200 with a key", inside),
        Trial("contractor", f"read {CONTRACT_GOLD} with Spark", "the same number of rows as for etl", inside_by_spark),
    ]


def foreign_places(world: World) -> list[Trial]:
    """Return the trials of staged creates at locations that are in use or outside of the warehouse.

    The response to a staged create contains a storage key with write access, so such a location must be refused.
    """
    etl, lake = world.people["etl"], world.lake
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}

    async def staged(location: str) -> Observation:
        body = {"name": "elsewhere", "schema": schema, "location": location, "stage-create": True}
        before = names((await etl.must("GET", f"{lake.namespace('gold')}/tables"))["identifiers"])
        reply = await etl.call("POST", f"{lake.namespace('gold')}/tables", body, vend=True)
        after = names((await etl.must("GET", f"{lake.namespace('gold')}/tables"))["identifiers"])
        given = reply.body is not None and "storage-credentials" in reply.body
        return Observation(400 <= reply.status < 500 and not given and before == after, f"{reply}")

    async def another_bucket() -> Observation:
        return await staged("s3://somebody-elses-bucket/elsewhere")

    async def outside_warehouse() -> Observation:
        return await staged(f"s3://{world.ready.s3.bucket}/outside-of-every-warehouse/elsewhere")

    async def inside_a_table() -> Observation:
        location = (await world.metadata_location("etl", SILVER)).rsplit("/metadata/", 1)[0]
        return await staged(f"{location}/data/elsewhere")

    return [
        Trial("etl", "staged create in another bucket", "4xx, no key, nothing created", another_bucket),
        Trial("etl", "staged create outside the warehouse", "4xx, no key, nothing created", outside_warehouse),
        Trial("etl", f"staged create inside {SILVER}", "4xx, no key, nothing created", inside_a_table),
    ]
