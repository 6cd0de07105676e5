# SPDX-License-Identifier: Apache-2.0
"""All settings of a Lakegate process. Only `process_environment.py` reads the environment.

A setting is a variable ``LAKEGATE__NAME``; a double underscore separates levels (``LAKEGATE__OPENFGA__ENDPOINT``). A
setting that exists in Lakekeeper has the same name after the prefix, so existing configurations need only another
prefix. A variable with the prefix ``LAKEGATE__`` that is not a setting is refused, because a misspelt security setting
must not be ignored.

Durations are ``500ms``, ``30s``, ``5m``, ``1h`` or plain seconds. Lists are separated by commas. Booleans are ``true``
and ``false``.
"""

from __future__ import annotations

import typing
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from gateway.settings.audit import Audit
from gateway.settings.authzen import AuthZen
from gateway.settings.bound_tokens import BoundTokens
from gateway.settings.engines import REMOVED, EngineProbes, ReferencedBy, TrustedEngine, Ui, owners_of_several_providers
from gateway.settings.env import PREFIX as PREFIX
from gateway.settings.env import SECONDS, PositiveSeconds, SettingRow, read, rows_of
from gateway.settings.env import Secret as Secret
from gateway.settings.env import SettingsError as SettingsError
from gateway.settings.events import Events
from gateway.settings.identity import KubernetesCluster
from gateway.settings.process_environment import cache_directory as cache_directory
from gateway.settings.process_environment import certificate_sources as certificate_sources
from gateway.settings.process_environment import export_metrics_directory as export_metrics_directory
from gateway.settings.process_environment import hadoop_environment as hadoop_environment
from gateway.settings.process_environment import java_home as java_home
from gateway.settings.process_environment import kubernetes_service, process_variables, with_files
from gateway.settings.process_environment import metrics_directory as metrics_directory
from gateway.settings.process_environment import search_path as search_path
from gateway.settings.process_environment import state_directory as state_directory
from gateway.settings.process_environment import tool_environment as tool_environment
from gateway.settings.process_environment import variable as variable
from gateway.settings.sections import (
    AccessRequests,
    BreakGlass,
    ChangeTickets,
    Count,
    Drift,
    Embedded,
    Idempotency,
    Limits,
    Memory,
    Metrics,
    Opa,
    OpenFga,
    Port,
    Shares,
)
from gateway.settings.stores import StoreSettings
from gateway.settings.tracing import MetricsExport, Tracing
from gateway.settings.verifiers import VerifierSettings, verifier_problems


class Settings(StoreSettings, frozen=True, kw_only=True):
    """All settings of one process, read once at its start."""

    base_uri: str | None = None
    """Address that clients use, without `/catalog`. If it is not set, the gateway sends clients no address."""
    profile: str | None = None
    """Profile of the gateway for commands (`lakegate profile`). Default: that of `lakegate profile use`."""
    bind_ip: str = "127.0.0.1"
    """Address to listen on."""
    listen_port: Port = 8181
    """Port of the catalog and management APIs."""
    workers: Count = 2
    """Number of worker processes."""
    max_connections: Count = 4096
    """Maximum number of open connections of a worker process, idle ones included. Further ones wait until another is
    closed.
    """
    log_level: typing.Literal["debug", "info", "warning", "error"] = "info"
    """Minimum severity of log events. Events below it are not written."""
    settings_directory: str | None = None
    """Directory with one file for each further setting, such as mounted secrets. The name of a file is that of the
    variable without `LAKEGATE__`. White space around the value is removed.
    """
    server_id: uuid.UUID | None = None
    """Id of this server. By default `migrate` creates one and stores it in the database."""

    enable_default_project: bool = True
    """Create a default project, and use it for requests that name no project."""
    default_project_id: Annotated[str, Meta(min_length=1)] = "00000000-0000-0000-0000-000000000000"
    """Id of the default project."""
    instance_admins: tuple[Annotated[str, Meta(pattern="^[a-z0-9-]+~.+$")], ...] = ()
    """Users `<provider>~<subject>`. Only they can change warehouses that are managed by `instance-admin`; the setting
    gives no other right.
    """
    authorizers: tuple[str, ...] = ()
    """Authorizers that decide in addition to OpenFGA: `rows` (the same model over the rows of PostgreSQL), or names of
    installed packages. Each is asked on every request, and can only refuse.
    """
    reserved_namespaces: tuple[str, ...] = ("system", "examples", "information_schema")
    """Names of top-level namespaces that no principal can create."""
    max_request_body_size: Count = 33_554_432
    """Maximum size of a request body in bytes, also after decompression. Larger bodies get 413."""
    compress_responses: bool = True
    """Compress responses of at least 2 KiB with zstd or gzip for clients that accept it. Responses with credentials,
    tokens or signatures are never compressed.
    """
    allow_origin: tuple[
        Annotated[str, Meta(pattern=r"^(\*|https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?)$")], ...
    ] = ()
    """Origins whose pages may call the gateway from a browser (CORS), as `https://console.example.com`; `*` for all. By
    default none. Cookies and other credentials of the browser are never allowed; pages send a token.
    """
    max_request_time: PositiveSeconds = 30.0
    """Timeout in seconds of a request. After it, a request that has committed nothing gets 429 (changes of the catalog)
    or 503 (all others).
    """
    max_request_silence: PositiveSeconds = 10.0
    """Timeout in seconds without any byte of an announced request body. After it, the request gets 408 and the
    connection is closed.
    """
    max_header_time: PositiveSeconds = 15.0
    """Timeout in seconds for the headers of a request. After it, the connection is closed."""
    maintenance_mode: typing.Literal["off", "read-only"] = "off"
    """`read-only` rejects changes with 429 (catalog) or 503 (all others) and still serves reads."""
    serve_swagger_ui: bool = True
    """Serve the OpenAPI documents and the page `/swagger-ui/`, which needs no token."""
    tag_suggestions: bool = False
    """Suggest tags for the columns of tables, by their names and types. Attaches nothing."""
    tag_labels: bool = False
    """Send tags as `labels` of loaded tables and views. Each load then has one more statement."""
    pagination_size_default: Count = 100
    """Number of items on a page if the request states none."""
    pagination_size_max: Count = 1000
    """Maximum number of items on a page. Larger requested sizes are reduced to it."""
    metadata_cleanup_window: Annotated[float, Meta(ge=1, extra=SECONDS)] = 3600.0
    """Time in seconds after which a metadata file without any reference is deleted. A change that takes longer fails.
    """
    task_poll_interval: PositiveSeconds = 2.0
    """Mean interval in seconds between two queries for background tasks that are due."""
    task_soft_deletion_workers: Annotated[int, Meta(ge=0)] = 2
    """Maximum number of dropped tables and views that a worker process deletes concurrently when their soft deletion
    expires. 0: it deletes none.
    """
    task_tabular_purge_workers: Annotated[int, Meta(ge=0)] = 2
    """Maximum number of tables and views whose files a worker process deletes concurrently. 0: it deletes none."""
    task_log_cleanup_workers: Annotated[int, Meta(ge=0)] = 2
    """Maximum number of projects whose ended tasks a worker process deletes concurrently. 0: it deletes none."""
    task_expire_staged_table_workers: Annotated[int, Meta(ge=0)] = 1
    """Maximum number of expired staged tables that a worker process deletes concurrently. 0: it deletes none."""
    health_check_frequency_seconds: Annotated[float, Meta(gt=0)] = 10.0
    """Interval in seconds between two health checks of each dependency."""

    policy_directory: str | None = None
    """Policy repository whose policies the gateway serves as bundles for OPA. It needs the program OPA
    (`EMBEDDED__OPA_BIN`), which checks the rules. By default, it serves the policies of the package.
    """
    policy_complete: bool = False
    """Accept a directory of policies that contains `gateway/main.rego`, and so replaces the rules of the package. Its
    authors decide about each request. It never replaces `system.authz`.
    """
    policy_signing_key_file: str | None = None
    """File with the private key (PEM), or for HS256 the secret, that signs these bundles."""
    policy_signing_algorithm: typing.Literal["RS256", "ES256", "HS256"] = "RS256"
    """Algorithm of these signatures."""
    endpoint_stat_flush_interval: PositiveSeconds = 30.0
    """Interval in seconds between two writes of the call counts to the database. A process that is killed loses the
    counts since the last write.
    """
    trusted_engines: Mapping[str, TrustedEngine] = MappingProxyType({})
    verifiers: Mapping[str, VerifierSettings] = MappingProxyType({})
    referenced_by: ReferencedBy = ReferencedBy()
    ui: Ui = Ui()

    metrics: Metrics = Metrics()
    metrics_export: MetricsExport = MetricsExport()
    tracing: Tracing = Tracing()
    openfga: OpenFga = OpenFga()
    opa: Opa = Opa()
    audit: Audit = Audit()
    events: Events = Events()
    shares: Shares = Shares()
    idempotency: Idempotency = Idempotency()
    memory: Memory = Memory()
    drift: Drift = Drift()
    limits: Limits = Limits()
    change_tickets: ChangeTickets = ChangeTickets()
    access_requests: AccessRequests = AccessRequests()
    break_glass: BreakGlass = BreakGlass()
    bound_tokens: BoundTokens = BoundTokens()
    engine_probes: EngineProbes = EngineProbes()
    authzen: AuthZen = AuthZen()
    embedded: Embedded = Embedded()

    def sign_in_issuer(self) -> str | None:
        """Return the issuer for logins in a browser or terminal; None if no provider is configured for them."""
        return self.ui.openid_provider_uri or self.openid_provider_uri

    def clusters(self) -> dict[str, KubernetesCluster]:
        """Return {id: cluster} of all Kubernetes clusters. The cluster in which this gateway runs, if it is enabled, is
        the first.

        Raises:
            SettingsError: the gateway's own cluster is enabled, but the gateway runs in none or no audience is set.
        """
        return self.clusters_from(*kubernetes_service())

    def require_serving(self) -> None:
        """Raise SettingsError unless all settings that `serve` needs to be safe are set.

        Without an audience, the gateway would accept tokens for other applications.

        Raises:
            SettingsError: has a line for each missing variable or other problem.
        """
        needed: dict[str, object] = {"PG_ENCRYPTION_KEY": self.pg_encryption_key}
        clusters = self.clusters()
        if not self.openid_providers and not clusters:
            needed["OPENID_PROVIDER_URI"] = self.openid_provider_uri
        missing = [f"{PREFIX}{name} must be set" for name, value in needed.items() if not value]
        if (self.openid_provider_uri or not (self.openid_providers or clusters)) and not self.openid_audience:
            missing.append(f"{PREFIX}OPENID_AUDIENCE must be set")
        wrong = [*self.identity_problems(clusters), *owners_of_several_providers(self.trusted_engines)]
        wrong += self.bound_tokens.problems(self.identity_providers())
        wrong += verifier_problems(self.verifiers, self.max_request_time)
        if self.ui.openid_provider_uri not in (None, *(each.uri for each in self.identity_providers().values())):
            wrong.append(f"{PREFIX}UI__OPENID_PROVIDER_URI names none of the providers whose tokens are accepted here")
        if "kv2" in self.secret_store_names():
            wrong += self.kv2.problems()
        wrong += self.audit.problems()
        if problems := [*missing, *wrong]:
            raise SettingsError("\n".join(problems))
        self.events.require_usable()
        self.storage_rules()
        self.storage.addresses()
        self.write_url()
        self.read_url()


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read all settings from ``environment`` (default: that of the process) and from its settings directory.

    Raises:
        SettingsError: lists all removed variables with their replacements, unknown variables with the nearest known
            name, required variables that are missing, and invalid values; or the files that cannot be read.
    """
    return read(Settings, with_files(process_variables() if environment is None else environment), REMOVED)


def given() -> dict[str, str]:
    """Return the variables of settings in the environment and the settings directory. Their names have no prefix.

    Raises:
        SettingsError: the directory or a file in it cannot be read.
    """
    variables = with_files(process_variables())
    return {name.removeprefix(PREFIX): value for name, value in variables.items() if name.startswith(PREFIX)}


def rows() -> list[SettingRow]:
    """Return the rows of the settings table in the order of the fields."""
    return rows_of(Settings)


def table() -> str:
    """Return the settings table as a Markdown page. `docs/settings.md` contains this text."""
    head = [
        "# Settings",
        "",
        "Generated from `gateway/settings/` by `lakegate settings-table`. Durations are written `500ms`, `30s`, `5m`",
        "or `1h`; a number without a unit means seconds. Lists are separated by commas. Every command that",
        "reads the settings refuses a variable that begins with `LAKEGATE__` and is not in this table.",
        "",
        "Lakegate also reads two standard variables. `SSL_CERT_FILE` and `SSL_CERT_DIR` name the CA certificates (PEM)",
        "for every outgoing connection. They replace the system's; for object stores they are added to the system's.",
        "",
        "| Variable | Meaning | Default |",
        "| --- | --- | --- |",
    ]
    lines = [
        f"| `{row.variable}` | {row.description} | {f'`{row.default}`' if row.default else ''} |" for row in rows()
    ]
    return "\n".join([*head, *lines]) + "\n"
