# SPDX-License-Identifier: Apache-2.0
"""Sections of the settings, such as OpenFGA, OPA, limits or the canary: ``LAKEGATE__OPENFGA__ENDPOINT`` is in one."""

from __future__ import annotations

import typing
from datetime import timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import SECONDS, PositiveSeconds, Seconds, SecondsOrZero, Secret

Port = Annotated[int, Meta(ge=1, le=65535)]
Count = Annotated[int, Meta(ge=1)]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Prometheus metrics, on a separate port at the address of ``BIND_IP``."""

    port: Port = 9000
    """Port of `/metrics`."""


class OpenFga(msgspec.Struct, frozen=True, kw_only=True):
    """OpenFGA, which decides by relationships."""

    endpoint: str = "http://127.0.0.1:8080"
    """Address of OpenFGA's HTTP API."""
    store_name: Annotated[str, Meta(min_length=3)] = "lakegate"
    """Name of the store, which `migrate` creates."""
    api_key: Secret | None = None
    """Preshared key sent to OpenFGA."""
    max_batch_check_size: Count = 50
    """Maximum number of checks in one batch, at most OpenFGA's own limit. Longer lists are sent as several batches."""
    timeout: Seconds = 3.0
    """Timeout in seconds of one call to OpenFGA. After it, the request gets 503, or 429 for a change of the catalog."""
    pending_creations: bool = True
    """True: decide about a new namespace, table or view with the tuples of its creation while OpenFGA has not received
    them. False: until then, the new object can be invisible to its creator.
    """
    server_timeout: Seconds = 3.0
    """Value in seconds of OpenFGA's `--request-timeout`, the maximum duration of a call in OpenFGA. The gateway treats
    a write without an answer as pending until this time has passed after its own timeout.
    """
    new_tuples: typing.Literal["grouped", "single", "locked"] = "grouped"
    """How the tuples of a new table, view or namespace are written: in one call with those of concurrent requests
    (`grouped`), in a call of their own (`single`), or under advisory locks like all other tuples (`locked`). Change it
    only to isolate an error.
    """


class Opa(msgspec.Struct, frozen=True, kw_only=True):
    """OPA, which decides by policies."""

    url: str = "http://127.0.0.1:8182"
    """Address of OPA."""
    token: Secret | None = None
    """Bearer token sent to OPA."""
    timeout: Seconds = 2.0
    """Timeout in seconds of one decision by OPA. After it, the request gets 503, or 429 for a change of the catalog."""


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the use of a worker process by one principal. Above a limit, requests wait and then get 429."""

    requests: Count = 32
    """Maximum number of concurrent requests of one principal in a worker process. Further requests wait."""
    waiting: Annotated[int, Meta(ge=0)] = 256
    """Maximum number of requests of one principal that wait. Further requests get 429."""
    wait: SecondsOrZero = 5.0
    """Timeout in seconds of waiting for the share. After it, the request gets 429."""
    total_requests: Count = 128
    """Maximum number of concurrent requests of all users in a worker process. Further requests wait, and principals
    take turns.
    """
    least_requests: Count = 16
    """Minimum number of concurrent requests of all users in an overloaded worker process."""
    decision_target: SecondsOrZero = 0.25
    """Duration of a decision in seconds above which it counts as slow. While a quarter of the decisions is slow, fewer
    requests run concurrently. 0 turns overload control off.
    """
    overload_wait: SecondsOrZero = 0.5
    """Maximum predicted wait in seconds behind requests of other principals. A request that would wait longer gets 429
    at once.
    """
    engine_requests: Count = 64
    """Number of additional concurrent requests for engines that hold `inspector` or `delegate`. One engine gets at most
    a quarter of them.
    """
    questions_per_second: Annotated[float, Meta(gt=0)] = 1000.0
    """Maximum number of authorization checks per second of one principal in a worker process. Further requests wait."""
    question_burst: Annotated[float, Meta(gt=0)] = 5000.0
    """Maximum number of authorization checks that a principal can make at once after a pause."""
    bytes: Count = 67_108_864
    """Maximum number of bytes in the request bodies that one principal has in progress in a worker process. Further
    requests get 429.
    """


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """Idempotency keys: a catalog change with an `Idempotency-Key` is made once, however often the request is sent."""

    enabled: bool = True
    """Process the header `Idempotency-Key` and advertise it to clients."""
    lifetime: Annotated[float, Meta(ge=60, extra=SECONDS)] = 1800.0
    """Time in seconds for which the success of a request with a key is recorded. It is advertised to clients."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Detection and repair of drift: tuples in OpenFGA that no row requires, or that are missing.

    The gateway detects it by reading OpenFGA's change feed.
    """

    interval: PositiveSeconds = 0.5
    """Interval in seconds between two reads of OpenFGA's change feed. A larger value delays the effect of tuples that
    are deleted in OpenFGA directly.
    """
    overlap: PositiveSeconds = 5.0
    """Time in seconds before the newest known change at which each read begins. It must exceed OpenFGA's request
    timeout.
    """
    external_grants: typing.Literal["remove", "adopt", "report"] = "remove"
    """Treatment of grants that were written into OpenFGA directly: remove them, adopt them as grants, or only report
    them.
    """


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum sizes of request bodies and of tables and views. Larger ones are refused with 400 or 413."""

    request_values: Count = 200_000
    """Maximum number of JSON values in a request body. Larger bodies get 413."""
    metadata_file_size: Count = 67_108_864
    """Maximum size in bytes of a metadata file that is registered, as stored (possibly compressed). Larger files are
    refused.
    """
    metadata_size: Count = 67_108_864
    """Maximum size in bytes of an uncompressed metadata document. Registrations and commits beyond it are refused."""
    transaction_size: Count = 134_217_728
    """Maximum total size in bytes of the stored metadata documents of the tables in one transaction. Larger
    transactions get 413.
    """
    metadata_values: Count = 4_000_000
    """Maximum number of JSON values in a metadata document that is registered. Larger documents are refused."""
    snapshots: Count = 100_000
    """Maximum number of snapshots of a table, and of entries in each list that grows with them. Commits beyond it are
    refused.
    """


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """The stack of `lakegate up` and `lakegate demo`; `serve` uses none of these."""

    opa_bin: str | None = None
    """Path of an `opa` program to use instead of building one."""
    openfga_bin: str | None = None
    """Path of an `openfga` program to use instead of building one."""
    weed_bin: str | None = None
    """Path of a SeaweedFS program to use instead of the installed one."""
    nanoidp_bin: str | None = None
    """Path of the identity provider's program to use instead of the installed one."""
    postgres_dir: str | None = None
    """PostgreSQL 18 directory with `bin/` to use instead of the installed one."""
    cache_dir: str | None = None
    """Directory for built tools and Spark's archives. Default: `~/.cache/lakegate`."""
    fast: bool = False
    """Do not wait for writes to the disk. Only for tests: a power failure loses data."""
    keep_dropped_days: Annotated[int, Meta(ge=0, le=365)] = 7
    """Days for which the warehouse that `lakegate up` creates keeps dropped tables and views. 0: it deletes them at
    once.
    """
    free_ports: bool = False
    """Use any free ports. Otherwise the gateway has port 8181 and the other parts 8182 to 8192, if they are free."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Caches of a worker process. An entry is not used longer than the data that it depends on is valid."""

    allow_seconds: SecondsOrZero = 60.0
    """Maximum time in seconds for which an allow is cached. 0: no cache."""
    confirm_grants: bool = True
    """True: confirm single grants in OpenFGA, and answer from one confirmed grant for all members of a role and all
    contents of a container. False: send every question to OpenFGA as it is.
    """
    silent_callers: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached callers about which no guardrail can speak. OPA is not asked about them, and its
    decision log lacks these questions. 0: OPA is asked about every caller.
    """
    token_seconds: SecondsOrZero = 300.0
    """Maximum time in seconds for which a verified token is cached. 0: no cache."""
    credentials: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached storage credentials. They are used for half of their lifetime. 0: no cache."""
    expiries: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached expiries of the grants behind credentials. An entry is cached for `ALLOW_SECONDS` at
    most. 0: no cache.
    """
    documents: Annotated[int, Meta(ge=0)] = 33_554_432
    """Maximum size in bytes of the cache of metadata documents. Documents larger than a quarter of it are not cached.
    0: no cache.
    """
    shared_modules: bool = True
    """Import the application before the worker processes are forked, so that they share its memory."""
    large_block: Annotated[int, Meta(ge=0, le=33554432)] = 1_048_576
    """Size in bytes from which freed memory blocks are returned to the system at once, with the GNU C library. 0: the
    library adapts this size, and keeps large blocks after large requests.
    """


class ChangeTickets(msgspec.Struct, frozen=True, kw_only=True):
    """Tickets of changes that a verifier of this catalog wants to have approved."""

    lifetime: Annotated[float, Meta(ge=1, le=31536000, extra=SECONDS)] = 604_800.0
    """Time in seconds for which a ticket waits for a decision. An approval or a rejection holds for the same time.
    After it, the statement gets a new ticket.
    """


class AccessRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Access requests: users request privileges, and principals that may grant them decide."""

    default_duration: Annotated[int, Meta(ge=60, le=31536000, extra=SECONDS)] = 604_800
    """Time in seconds for which a requested access is granted if the request states none."""
    longest_duration: Annotated[int, Meta(ge=60, le=31536000, extra=SECONDS)] = 7_776_000
    """The longest time in seconds for which access can be requested."""
    lifetime: Annotated[float, Meta(ge=60, le=31536000, extra=SECONDS)] = 1_209_600.0
    """Time in seconds for which a request waits for a decision. After it, the request expires."""
    reminder_interval: Annotated[float, Meta(ge=0, le=31536000, extra=SECONDS)] = 86_400.0
    """The shortest time in seconds between two reminders of one request."""
    per_principal: Annotated[int, Meta(ge=1, le=10000)] = 50
    """Maximum number of pending requests of one user."""
    per_object: Annotated[int, Meta(ge=1, le=10000)] = 200
    """Maximum number of pending requests on one object."""


class BreakGlass(msgspec.Struct, frozen=True, kw_only=True):
    """Break-glass: holders of `break_glass` take rights for an emergency, for at most an hour."""

    second_person: bool = False
    """Another holder of `break_glass`, or a principal that secures the project, confirms each activation first."""


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """The canary: attempts on the live stores to leave the scope of vended credentials."""

    interval: SecondsOrZero = 86_400.0
    """Time in seconds between two runs of the canary on the store of a warehouse. 0: no periodic runs.
    `SKIP_STORAGE_VALIDATION` turns them off too.
    """
    retry: PositiveSeconds = 900.0
    """Time in seconds after an inconclusive run until the next one, for example if the store did not answer."""
    enforce: typing.Literal["off", "escaped", "unproven"] = "off"
    """Warehouses for which no credentials are vended. `off`: none; a store that lets a credential escape is only
    reported. `escaped`: those whose store let one escape. `unproven`: all without a proof for their current storage
    profile. A new warehouse always needs the proof, unless `SKIP_STORAGE_VALIDATION` is set.
    """

    def keep(self) -> timedelta:
        """Return the time for which a conclusive verdict stays valid while later runs are inconclusive: three
        intervals.
        """
        return timedelta(seconds=3 * self.interval)
