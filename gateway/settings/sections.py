# SPDX-License-Identifier: Apache-2.0
"""Sections of the settings, each nested below a name of its own (``LAKEGATE__OPENFGA__ENDPOINT``)."""

from __future__ import annotations

import typing
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import SECONDS, Secret

Port = Annotated[int, Meta(ge=1, le=65535)]
Count = Annotated[int, Meta(ge=1)]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Prometheus metrics, on a separate port at the address of ``BIND_IP``."""

    port: Annotated[Port, Meta(description="Port of `/metrics`.")] = 9000


class OpenFga(msgspec.Struct, frozen=True, kw_only=True):
    """OpenFGA, which decides by relationships."""

    endpoint: Annotated[str, Meta(description="Address of OpenFGA's HTTP API.")] = "http://127.0.0.1:8080"
    store_name: Annotated[str, Meta(min_length=3, description="Name of the store, which `migrate` creates.")] = (
        "lakegate"
    )
    api_key: Annotated[Secret | None, Meta(description="Preshared key sent to OpenFGA.")] = None
    max_batch_check_size: Annotated[
        Count,
        Meta(
            description="Maximum number of checks in one batch, at most OpenFGA's own limit. Longer lists are sent as "
            "several batches."
        ),
    ] = 50
    timeout: Annotated[
        float,
        Meta(
            description="Timeout in seconds of one call to OpenFGA. After it, the request gets 503, or 429 for a "
            "change of the catalog.",
            extra=SECONDS,
        ),
    ] = 3.0
    pending_creations: Annotated[
        bool,
        Meta(
            description="True: decide about a new namespace, table or view with the tuples of its creation while "
            "OpenFGA has not received them. False: until then, the new object can be invisible to its creator."
        ),
    ] = True
    server_timeout: Annotated[
        float,
        Meta(
            description="Value in seconds of OpenFGA's `--request-timeout`, the maximum duration of a call in OpenFGA. "
            "The gateway treats a write without an answer as pending until this time has passed after its own timeout.",
            extra=SECONDS,
        ),
    ] = 3.0
    new_tuples: Annotated[
        typing.Literal["grouped", "single", "locked"],
        Meta(
            description="How the tuples of a new table, view or namespace are written: in one call with those of "
            "concurrent requests (`grouped`), in a call of their own (`single`), or under advisory locks like all "
            "other tuples (`locked`). Change it only to isolate an error."
        ),
    ] = "grouped"


class Opa(msgspec.Struct, frozen=True, kw_only=True):
    """OPA, which decides by policies."""

    url: Annotated[str, Meta(description="Address of OPA.")] = "http://127.0.0.1:8182"
    token: Annotated[Secret | None, Meta(description="Bearer token sent to OPA.")] = None
    timeout: Annotated[
        float,
        Meta(
            description="Timeout in seconds of one decision by OPA. After it, the request gets 503, or 429 for a "
            "change of the catalog.",
            extra=SECONDS,
        ),
    ] = 2.0


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the use of a worker process by one principal. Above a limit, requests wait and then get 429."""

    requests: Annotated[
        Count,
        Meta(
            description="Maximum number of concurrent requests of one principal in a worker process. Further requests "
            "wait."
        ),
    ] = 32
    waiting: Annotated[
        int, Meta(ge=0, description="Maximum number of requests of one principal that wait. Further requests get 429.")
    ] = 256
    wait: Annotated[
        float,
        Meta(
            ge=0,
            description="Timeout in seconds of waiting for the share. After it, the request gets 429.",
            extra=SECONDS,
        ),
    ] = 5.0
    total_requests: Annotated[
        Count,
        Meta(
            description="Maximum number of concurrent requests of all users in a worker process. Further requests "
            "wait, and principals take turns."
        ),
    ] = 128
    least_requests: Annotated[
        Count,
        Meta(description="Minimum number of concurrent requests of all users in an overloaded worker process."),
    ] = 16
    decision_target: Annotated[
        float,
        Meta(
            ge=0,
            description="Duration of a decision in seconds above which it counts as slow. While a quarter of the "
            "decisions is slow, fewer requests run concurrently. 0 turns overload control off.",
            extra=SECONDS,
        ),
    ] = 0.25
    overload_wait: Annotated[
        float,
        Meta(
            ge=0,
            description="Maximum predicted wait in seconds behind requests of other principals. A request that would "
            "wait longer gets 429 at once.",
            extra=SECONDS,
        ),
    ] = 0.5
    engine_requests: Annotated[
        Count,
        Meta(
            description="Number of additional concurrent requests for engines that hold `inspector` or `delegate`. One "
            "engine gets at most a quarter of them."
        ),
    ] = 64
    questions_per_second: Annotated[
        float,
        Meta(
            gt=0,
            description="Maximum number of authorization checks per second of one principal in a worker process. "
            "Further requests wait.",
        ),
    ] = 1000.0
    question_burst: Annotated[
        float,
        Meta(
            gt=0, description="Maximum number of authorization checks that a principal can make at once after a pause."
        ),
    ] = 5000.0
    bytes: Annotated[
        Count,
        Meta(
            description="Maximum number of bytes in the request bodies that one principal has in progress in a worker "
            "process. Further requests get 429."
        ),
    ] = 67_108_864


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """Idempotency keys: a catalog change with an `Idempotency-Key` is made once, however often the request is sent."""

    enabled: Annotated[bool, Meta(description="Process the header `Idempotency-Key` and advertise it to clients.")] = (
        True
    )
    lifetime: Annotated[
        float,
        Meta(
            ge=60,
            description="Time in seconds for which the success of a request with a key is recorded. It is "
            "advertised to clients.",
            extra=SECONDS,
        ),
    ] = 1800.0
    grace_period: Annotated[
        float,
        Meta(
            ge=0,
            description="Time in seconds for which the success is recorded beyond `LIFETIME`, for late retries.",
            extra=SECONDS,
        ),
    ] = 300.0


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Detection and repair of drift: tuples in OpenFGA that no row requires, or that are missing.

    The gateway detects it by reading OpenFGA's change feed.
    """

    interval: Annotated[
        float,
        Meta(
            gt=0,
            description="Interval in seconds between two reads of OpenFGA's change feed. A larger value delays the "
            "effect of tuples that are deleted in OpenFGA directly.",
            extra=SECONDS,
        ),
    ] = 0.5
    overlap: Annotated[
        float,
        Meta(
            gt=0,
            description="Time in seconds before the newest known change at which each read begins. It must exceed "
            "OpenFGA's request timeout.",
            extra=SECONDS,
        ),
    ] = 5.0
    external_grants: Annotated[
        typing.Literal["remove", "adopt", "report"],
        Meta(
            description="Treatment of grants that were written into OpenFGA directly: remove them, adopt them as "
            "grants, or only report them."
        ),
    ] = "remove"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum sizes of request bodies and of tables and views. Larger ones are refused with 400 or 413."""

    request_values: Annotated[
        Count, Meta(description="Maximum number of JSON values in a request body. Larger bodies get 413.")
    ] = 200_000
    metadata_file_size: Annotated[
        Count,
        Meta(
            description="Maximum size in bytes of a metadata file that is registered, as stored (possibly compressed). "
            "Larger files are refused."
        ),
    ] = 67_108_864
    metadata_size: Annotated[
        Count,
        Meta(
            description="Maximum size in bytes of an uncompressed metadata document. Registrations and commits beyond "
            "it are refused."
        ),
    ] = 67_108_864
    transaction_size: Annotated[
        Count,
        Meta(
            description="Maximum total size in bytes of the stored metadata documents of the tables in one "
            "transaction. Larger transactions get 413."
        ),
    ] = 134_217_728
    metadata_values: Annotated[
        Count,
        Meta(
            description="Maximum number of JSON values in a metadata document that is registered. Larger documents are "
            "refused."
        ),
    ] = 4_000_000
    snapshots: Annotated[
        Count,
        Meta(
            description="Maximum number of snapshots of a table, and of entries in each list that grows with them. "
            "Commits beyond it are refused."
        ),
    ] = 100_000
    structures: Annotated[
        Count,
        Meta(
            description="Maximum number of schemas, of partition specs, of sort orders, of refs and of encryption keys "
            "of a table, and of versions of a view. Commits beyond it are refused."
        ),
    ] = 10_000
    properties: Annotated[
        Count,
        Meta(description="Maximum number of properties of a table, view or namespace. Changes beyond it are refused."),
    ] = 10_000


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """The stack of `lakegate up` and `lakegate demo`; `serve` uses none of these."""

    opa_bin: Annotated[str | None, Meta(description="Path of an `opa` program to use instead of building one.")] = None
    openfga_bin: Annotated[
        str | None, Meta(description="Path of an `openfga` program to use instead of building one.")
    ] = None
    weed_bin: Annotated[
        str | None, Meta(description="Path of a SeaweedFS program to use instead of the installed one.")
    ] = None
    nanoidp_bin: Annotated[
        str | None, Meta(description="Path of the identity provider's program to use instead of the installed one.")
    ] = None
    postgres_dir: Annotated[
        str | None, Meta(description="PostgreSQL 18 directory with `bin/` to use instead of the installed one.")
    ] = None
    cache_dir: Annotated[
        str | None, Meta(description="Directory for built tools and Spark's archives. Default: `~/.cache/lakegate`.")
    ] = None
    fast: Annotated[
        bool, Meta(description="Do not wait for writes to the disk. Only for tests: a power failure loses data.")
    ] = False
    keep_dropped_days: Annotated[
        int,
        Meta(
            ge=0,
            le=365,
            description="Days for which the warehouse that `lakegate up` creates keeps dropped tables and views. 0: it "
            "deletes them at once.",
        ),
    ] = 7
    free_ports: Annotated[
        bool,
        Meta(
            description="Use any free ports. Otherwise the gateway has port 8181 and the other parts 8182 to 8192, if "
            "they are free."
        ),
    ] = False
