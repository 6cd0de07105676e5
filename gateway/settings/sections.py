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
    store_name: Annotated[str, Meta(min_length=3, description="Name of the store; `migrate` makes it.")] = "lakegate"
    api_key: Annotated[Secret | None, Meta(description="Preshared key sent to OpenFGA.")] = None
    max_batch_check_size: Annotated[
        Count, Meta(description="Most checks in one batch; at most what the server allows.")
    ] = 50
    timeout: Annotated[float, Meta(description="Longest time for one call.", extra=SECONDS)] = 3.0
    server_timeout: Annotated[
        float,
        Meta(
            description="OpenFGA's own `--request-timeout`: how long it may go on with a request nobody waits for.",
            extra=SECONDS,
        ),
    ] = 3.0


class Opa(msgspec.Struct, frozen=True, kw_only=True):
    """OPA, which decides by policies."""

    url: Annotated[str, Meta(description="Address of OPA.")] = "http://127.0.0.1:8182"
    token: Annotated[Secret | None, Meta(description="Bearer token sent to OPA.")] = None
    timeout: Annotated[float, Meta(description="Longest time for one decision.", extra=SECONDS)] = 2.0


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit trail. Only records of reads and refusals are buffered. All others are durable before the response."""

    buffer_size: Annotated[
        Count, Meta(description="Most records of reads and refusals waiting to be written; when full, requests fail.")
    ] = 10_000
    principal_share: Annotated[
        Count,
        Meta(description="Most such records of one principal, never above a quarter of them all; more get 429."),
    ] = 2_500
    flush_interval: Annotated[float, Meta(description="Longest time such a record waits.", extra=SECONDS)] = 0.2


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the use of a worker process by one principal. Above a limit, requests wait and then get 429."""

    requests: Annotated[Count, Meta(description="Most concurrent requests of one principal in a worker process.")] = 32
    waiting: Annotated[
        int, Meta(ge=0, description="Most requests of one principal that wait for its other requests; more get 429.")
    ] = 256
    wait: Annotated[
        float, Meta(ge=0, description="Longest time that a request waits for its share before 429.", extra=SECONDS)
    ] = 5.0
    total_requests: Annotated[
        Count, Meta(description="Most concurrent requests of all users in a worker process; users take turns.")
    ] = 128
    engine_requests: Annotated[
        Count,
        Meta(
            description="Concurrent requests reserved, beside those, for engines that hold `inspector` or `delegate`; "
            "one of them has a quarter at most."
        ),
    ] = 64
    questions_per_second: Annotated[
        float, Meta(gt=0, description="Authorization questions a second of one principal in a worker process.")
    ] = 1000.0
    question_burst: Annotated[
        float, Meta(gt=0, description="Authorization questions that a principal may ask at once after a pause.")
    ] = 5000.0
    bytes: Annotated[
        Count, Meta(description="Most bytes of request bodies of one principal in progress in a worker process.")
    ] = 67_108_864


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """Idempotency keys: a catalog change with an `Idempotency-Key` is made once, however often the request is sent."""

    enabled: Annotated[bool, Meta(description="Heed `Idempotency-Key` and advertise it to clients.")] = True
    lifetime: Annotated[
        float, Meta(ge=60, description="How long a success is remembered; advertised to clients.", extra=SECONDS)
    ] = 1800.0
    grace_period: Annotated[
        float, Meta(ge=0, description="How much longer it is really remembered.", extra=SECONDS)
    ] = 300.0


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Caches of a worker process. An entry is not used longer than the data that it depends on is valid."""

    allows: Annotated[Count, Meta(description="Most allows of OpenFGA; half a kilobyte each.")] = 20_000
    allow_seconds: Annotated[
        float, Meta(ge=0, description="Longest life of an allow; 0 asks OpenFGA each time.", extra=SECONDS)
    ] = 60.0
    policy_answers: Annotated[
        Count, Meta(description="Most answers of OPA that the policies say last (`valid_until`).")
    ] = 10_000
    tokens: Annotated[Count, Meta(description="Most verified tokens.")] = 10_000
    token_seconds: Annotated[
        float, Meta(ge=0, description="Longest time a token counts as verified; 0 verifies each time.", extra=SECONDS)
    ] = 300.0
    credentials: Annotated[
        int, Meta(ge=0, description="Most vended credentials, kept for half their life; 0 mints each time.")
    ] = 10_000
    documents: Annotated[
        int,
        Meta(ge=0, description="Most bytes of metadata documents; larger ones than a quarter of it are not kept."),
    ] = 67_108_864


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Detection and repair of drift: tuples in OpenFGA that no row requires, or that are missing.

    The gateway detects it by reading OpenFGA's change feed.
    """

    interval: Annotated[
        float,
        Meta(
            gt=0,
            description="Time between two looks at OpenFGA's changes; with it the bound of one second holds.",
            extra=SECONDS,
        ),
    ] = 0.5
    overlap: Annotated[
        float,
        Meta(
            gt=0, description="How far back each look begins; more than OpenFGA's own request timeout.", extra=SECONDS
        ),
    ] = 5.0
    external_grants: Annotated[
        typing.Literal["remove", "adopt", "report"],
        Meta(description="What becomes of a grant that somebody wrote into OpenFGA directly."),
    ] = "remove"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum sizes of request bodies and of tables and views. Larger ones are refused with 400 or 413."""

    request_values: Annotated[
        Count, Meta(description="Most JSON values in a request body: reading more would keep other requests waiting.")
    ] = 200_000
    metadata_file_size: Annotated[
        Count,
        Meta(description="Largest metadata file that is read to be registered, as it lies in the store, in bytes."),
    ] = 67_108_864
    metadata_size: Annotated[
        Count, Meta(description="Largest metadata document, unpacked, registered or made by commits, in bytes.")
    ] = 67_108_864
    transaction_size: Annotated[
        Count, Meta(description="Most bytes of metadata documents that the tables of one transaction have in all.")
    ] = 134_217_728
    metadata_values: Annotated[
        Count, Meta(description="Most JSON values in a metadata document that is registered.")
    ] = 4_000_000
    snapshots: Annotated[
        Count, Meta(description="Most snapshots of a table, and entries in each list that grows with them.")
    ] = 100_000
    structures: Annotated[
        Count,
        Meta(description="Most schemas, partition specs, sort orders, refs or keys of a table, versions of a view."),
    ] = 10_000
    properties: Annotated[Count, Meta(description="Most properties of a table, view or namespace.")] = 10_000


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """The stack of `lakegate up` and `lakegate demo`; `serve` uses none of these."""

    opa_bin: Annotated[str | None, Meta(description="An `opa` program to use instead of building one.")] = None
    openfga_bin: Annotated[str | None, Meta(description="An `openfga` program to use instead of building one.")] = None
    weed_bin: Annotated[str | None, Meta(description="A SeaweedFS program instead of the installed one.")] = None
    nanoidp_bin: Annotated[
        str | None, Meta(description="The identity provider's program instead of the installed one.")
    ] = None
    postgres_dir: Annotated[
        str | None, Meta(description="A PostgreSQL 18 directory with `bin/` instead of the installed one.")
    ] = None
    cache_dir: Annotated[
        str | None, Meta(description="Where built tools and Spark's archives are kept; default `~/.cache/lakegate`.")
    ] = None
    fast: Annotated[bool, Meta(description="Do not wait for the disk: for tests, loses data at a power cut.")] = False
