# SPDX-License-Identifier: Apache-2.0
"""All settings of a Lakegate process. No other module reads the environment.

A setting is a variable ``LAKEGATE__NAME``; a double underscore nests (``LAKEGATE__OPENFGA__ENDPOINT``). A setting that
exists in Lakekeeper has the same name after the prefix, so existing configurations need only the other prefix. A
variable with the prefix ``LAKEGATE__`` that is no setting is refused, because a misspelt security setting must not be
ignored.

Durations are ``500ms``, ``30s``, ``5m``, ``1h`` or plain seconds. Lists are separated by commas. Booleans are ``true``
and ``false``.
"""

from __future__ import annotations

import os
import typing
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta

from gateway.scope.endpoint import parse_networks
from gateway.scope.rules import StorageRules, parse_directories
from gateway.settings.engines import REMOVED, ReferencedBy, TrustedEngine, Ui, owners_of_several_providers
from gateway.settings.env import PREFIX, SECONDS, SettingRow, read, rows_of
from gateway.settings.env import Secret as Secret
from gateway.settings.env import SettingsError as SettingsError
from gateway.settings.identity import IdentitySettings, KubernetesCluster
from gateway.settings.postgres_url import is_local, require_no_tls
from gateway.settings.sections import (
    Audit,
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

SslMode = typing.Literal["disable", "prefer", "require", "verify-ca", "verify-full"]


class Settings(IdentitySettings, frozen=True, kw_only=True):
    """All settings of one process, read once at its start."""

    base_uri: Annotated[
        str | None, Meta(description="Address clients use, without `/catalog`; told to them only when set.")
    ] = None
    bind_ip: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    listen_port: Annotated[Port, Meta(description="Port of the catalog and management APIs.")] = 8181
    workers: Annotated[Count, Meta(description="Worker processes.")] = 2
    log_level: Annotated[
        typing.Literal["debug", "info", "warning", "error"], Meta(description="Least level that is logged.")
    ] = "info"
    server_id: Annotated[
        uuid.UUID | None, Meta(description="Identity of this server; default: made by `migrate` and kept.")
    ] = None

    enable_default_project: Annotated[bool, Meta(description="Make and use a default project.")] = True
    default_project_id: Annotated[str, Meta(min_length=1, description="Id of the default project.")] = (
        "00000000-0000-0000-0000-000000000000"
    )
    instance_admins: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[a-z0-9-]+~.+$")], ...],
        Meta(
            description="Users `oidc~<subject>` who alone may change warehouses that are managed by `instance-admin`; "
            "it gives no other right."
        ),
    ] = ()
    reserved_namespaces: Annotated[
        tuple[str, ...], Meta(description="Top-level namespace names nobody may create.")
    ] = ("system", "examples", "information_schema")
    max_request_body_size: Annotated[Count, Meta(description="Largest request body in bytes.")] = 33_554_432
    max_request_time: Annotated[
        float,
        Meta(
            gt=0,
            description="Longest time of a request; when it is over and nothing was committed: 429 or 503.",
            extra=SECONDS,
        ),
    ] = 30.0
    max_request_silence: Annotated[
        float, Meta(gt=0, description="How long a client may send nothing of a body it announced: 408.", extra=SECONDS)
    ] = 10.0
    max_header_time: Annotated[
        float, Meta(gt=0, description="How long the headers of a request may take to arrive.", extra=SECONDS)
    ] = 15.0
    maintenance_mode: Annotated[
        typing.Literal["off", "read-only"],
        Meta(description="`read-only`: what would change anything is answered with 429 or 503, reading goes on."),
    ] = "off"
    serve_swagger_ui: Annotated[
        bool, Meta(description="Serve the OpenAPI documents and a page to try them at `/swagger-ui/`, without a token.")
    ] = True
    pagination_size_default: Annotated[Count, Meta(description="Items on a page when none are asked for.")] = 100
    pagination_size_max: Annotated[Count, Meta(description="Most items on a page.")] = 1000
    skip_storage_validation: Annotated[
        bool, Meta(description="Accept a warehouse without trying its storage. Not for production.")
    ] = False
    storage_endpoint_networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks (CIDR) beyond public addresses that storage profiles may name as `endpoint` and "
            "`sts-endpoint`: loopback and private ones are refused unless listed; link-local, site-local and metadata "
            "ones always."
        ),
    ] = ()
    storage_local_directories: Annotated[
        tuple[str, ...],
        Meta(
            description="Absolute paths on the gateway's machine below which warehouses of type `local` may lie. For "
            "development: their clients open the files themselves, without credentials. Empty: no such warehouse."
        ),
    ] = ()
    metadata_cleanup_window: Annotated[
        float,
        Meta(
            ge=1,
            description="How long a metadata file that nothing names is kept; a change that takes longer fails.",
            extra=SECONDS,
        ),
    ] = 3600.0
    task_poll_interval: Annotated[
        float, Meta(gt=0, description="Mean time between two looks for background tasks that are due.", extra=SECONDS)
    ] = 2.0
    task_soft_deletion_workers: Annotated[
        int, Meta(ge=0, description="Most dropped tables and views a worker process ends at a time; 0: none of them.")
    ] = 2
    task_tabular_purge_workers: Annotated[
        int, Meta(ge=0, description="Most tables and views whose files a worker process deletes at a time.")
    ] = 2
    task_log_cleanup_workers: Annotated[
        int, Meta(ge=0, description="Most projects whose ended tasks a worker process forgets at a time.")
    ] = 2
    task_expire_staged_table_workers: Annotated[
        int, Meta(ge=0, description="Most tables that were never made a worker process forgets at a time.")
    ] = 1
    health_check_frequency_seconds: Annotated[
        float, Meta(gt=0, description="Time between two checks of each dependency, in seconds.")
    ] = 10.0

    pg_database_url_write: Annotated[Secret | None, Meta(description="URL of the primary.")] = None
    pg_database_url_read: Annotated[
        Secret | None,
        Meta(description="URL of a replica for searches, statistics and lists for people. Default: the primary."),
    ] = None
    pg_host_w: Annotated[str | None, Meta(description="Host of the primary, when no URL is given.")] = None
    pg_host_r: Annotated[str | None, Meta(description="Host of the replica, when no URL is given.")] = None
    pg_port: Annotated[Port, Meta(description="PostgreSQL's port.")] = 5432
    pg_user: Annotated[str | None, Meta(description="PostgreSQL's role.")] = None
    pg_password: Annotated[Secret | None, Meta(description="The role's password.")] = None
    pg_database: Annotated[str | None, Meta(description="Name of the database.")] = None
    pg_ssl_mode: Annotated[
        SslMode | None,
        Meta(
            description="TLS towards PostgreSQL, as libpq's `sslmode`; only `verify-full` proves which server answers. "
            "Default: `verify-full`; `prefer` when every host is a loopback address or a socket."
        ),
    ] = None
    pg_ssl_root_cert: Annotated[
        str | None,
        Meta(description="File of certificates to trust for PostgreSQL alone, for the two `verify` modes."),
    ] = None
    pg_encryption_key: Annotated[
        Secret | None, Meta(description="Key that encrypts storage credentials at rest; needed by `serve`.")
    ] = None
    pg_encryption_key_other: Annotated[
        Secret | None,
        Meta(description="A second key that only opens what it sealed: the next or the former one while keys change."),
    ] = None
    pg_read_pool_connections: Annotated[
        Count, Meta(description="Most connections of a worker to the replica; none without a replica.")
    ] = 10
    pg_write_pool_connections: Annotated[
        Count, Meta(description="Half of the most connections of a worker, which opens and keeps as many as it needs.")
    ] = 5
    pg_acquire_timeout: Annotated[float, Meta(gt=0, description="Longest wait for a connection.", extra=SECONDS)] = 5.0

    endpoint_stat_flush_interval: Annotated[
        float,
        Meta(
            gt=0, description="How often counts of calls are written down; a killed process loses them.", extra=SECONDS
        ),
    ] = 30.0
    trusted_engines: Mapping[str, TrustedEngine] = MappingProxyType({})
    referenced_by: ReferencedBy = ReferencedBy()
    ui: Ui = Ui()

    metrics: Metrics = Metrics()
    openfga: OpenFga = OpenFga()
    opa: Opa = Opa()
    audit: Audit = Audit()
    shares: Shares = Shares()
    idempotency: Idempotency = Idempotency()
    memory: Memory = Memory()
    drift: Drift = Drift()
    limits: Limits = Limits()
    embedded: Embedded = Embedded()

    def storage_rules(self) -> StorageRules:
        """Return the rules for the networks and directories that storage profiles may name.

        Raises:
            SettingsError: an entry is no network in CIDR form, or no absolute and canonical path.
        """
        try:
            networks = parse_networks(self.storage_endpoint_networks)
        except ValueError as wrong:
            raise SettingsError(f"{PREFIX}STORAGE_ENDPOINT_NETWORKS: {wrong}") from None
        try:
            directories = parse_directories(self.storage_local_directories)
        except ValueError as wrong:
            raise SettingsError(f"{PREFIX}STORAGE_LOCAL_DIRECTORIES: {wrong}") from None
        return StorageRules(endpoints=networks, directories=directories)

    def write_url(self) -> Secret:
        """Return the connection URL of the primary, as set or composed of its parts.

        Raises:
            SettingsError: neither the URL nor every part is set, or the URL has a TLS parameter.
        """
        if self.pg_database_url_write is not None:
            require_no_tls(self.pg_database_url_write, "PG_DATABASE_URL_WRITE")
            return self.pg_database_url_write
        return self._url_from(self.pg_host_w, "PG_HOST_W", "PG_DATABASE_URL_WRITE")

    def postgres_tls_mode(self, url: Secret | None = None) -> SslMode:
        """Return libpq's `sslmode` for the database at `url`, by default the primary.

        Without the setting it is `prefer` if all hosts of the URL are local, else `verify-full`.

        Raises:
            SettingsError: the setting and `url` are missing, and no valid URL of the primary is set.
        """
        if self.pg_ssl_mode is not None:
            return self.pg_ssl_mode
        return "prefer" if is_local(url or self.write_url()) else "verify-full"

    def read_url(self) -> Secret | None:
        """Return the connection URL of the replica, as set or composed of its parts; None without a replica.

        Raises:
            SettingsError: a part is missing, or the URL has a TLS parameter.
        """
        if self.pg_database_url_read is not None:
            require_no_tls(self.pg_database_url_read, "PG_DATABASE_URL_READ")
            return self.pg_database_url_read
        return self._url_from(self.pg_host_r, "PG_HOST_R", "PG_DATABASE_URL_READ") if self.pg_host_r else None

    def encryption_keys(self) -> list[str]:
        """Return the keys for stored credentials: first the one that encrypts, then the one that only decrypts."""
        return [key.reveal() for key in (self.pg_encryption_key, self.pg_encryption_key_other) if key]

    def require_encryption_key(self) -> None:
        """Require the encryption key of stored credentials and the URL of the primary.

        Raises:
            SettingsError: names the missing variable.
        """
        if not self.pg_encryption_key:
            raise SettingsError(f"{PREFIX}PG_ENCRYPTION_KEY must be set")
        self.write_url()

    def _url_from(self, host: str | None, host_name: str, url_name: str) -> Secret:
        parts = {host_name: host, "PG_USER": self.pg_user, "PG_DATABASE": self.pg_database}
        missing = [f"{PREFIX}{name}" for name, value in parts.items() if not value]
        if missing or host is None:
            raise SettingsError(f"{PREFIX}{url_name} must be set, or else {', '.join(missing)}")
        password = f":{quote(self.pg_password.reveal(), safe='')}" if self.pg_password else ""
        user = quote(self.pg_user or "", safe="")
        return Secret(f"postgresql://{user}{password}@{host}:{self.pg_port}/{quote(self.pg_database or '', safe='')}")

    def sign_in_issuer(self) -> str | None:
        """Return the issuer of the provider where people log in, in a browser or terminal; None if there is none."""
        return self.ui.openid_provider_uri or self.openid_provider_uri

    def clusters(self) -> dict[str, KubernetesCluster]:
        """Return all Kubernetes clusters by id, first the one in which this gateway runs, if it is enabled.

        Raises:
            SettingsError: the gateway's own cluster is enabled, but the gateway runs in none or no audience is set.
        """
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        return self.clusters_from(host, port)

    def require_serving(self) -> None:
        """Require all settings that `serve` needs to be safe.

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
        if self.ui.openid_provider_uri not in (None, *(each.uri for each in self.identity_providers().values())):
            wrong.append(f"{PREFIX}UI__OPENID_PROVIDER_URI must be the URI of a configured identity provider")
        if told := [*missing, *wrong]:
            raise SettingsError("\n".join(told))
        self.storage_rules()
        self.write_url()
        self.read_url()


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read all settings from ``environment`` (default: that of the process).

    Raises:
        SettingsError: lists all removed variables with their replacements, unknown variables with the nearest known
            name, required variables that are missing, and invalid values.
    """
    return read(Settings, os.environ if environment is None else environment, REMOVED)


def rows() -> list[SettingRow]:
    """Return the rows of the settings table in the order of the fields."""
    return rows_of(Settings)


def table() -> str:
    """Return the settings table as a Markdown page. `docs/settings.md` contains this text."""
    head = [
        "# Settings",
        "",
        "Generated from `gateway/settings/` by `lakegate settings-table`. Durations are written `500ms`, `30s`, `5m`",
        "or `1h`; lists are separated by commas. A variable with our prefix that is not in this table is refused.",
        "",
        "Two variables without our prefix are heeded: `SSL_CERT_FILE` and `SSL_CERT_DIR` name certificates (PEM) to",
        "trust instead of the system's, for every outgoing connection (object stores: beside the system's).",
        "",
        "| Variable | Meaning | Default |",
        "| --- | --- | --- |",
    ]
    lines = [
        f"| `{row.variable}` | {row.description} | {f'`{row.default}`' if row.default else ''} |" for row in rows()
    ]
    return "\n".join([*head, *lines]) + "\n"


def export_metrics_directory(directory: str) -> None:
    """Set the directory of the workers' metrics. The Prometheus client reads it only from the environment."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory


def metrics_directory() -> str | None:
    """Return the directory that ``export_metrics_directory`` set; None if it was not called."""
    return os.environ.get("PROMETHEUS_MULTIPROC_DIR")


def certificate_sources() -> tuple[str | None, str | None]:
    """Return ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, which all programs that use OpenSSL read; None if not set."""
    return os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None


def cache_directory(settings: Settings) -> str:
    """Return the directory for tools: the setting, ``$XDG_CACHE_HOME/lakegate`` or ``~/.cache/lakegate``."""
    if settings.embedded.cache_dir is not None:
        return settings.embedded.cache_dir
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lakegate")


def state_directory() -> str:
    """Return the directory for the logins of a user: ``$XDG_STATE_HOME/lakegate`` or ``~/.local/state/lakegate``."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "lakegate")


def search_path() -> str:
    """Return the ``PATH`` in which programs are searched."""
    return os.environ.get("PATH", os.defpath)


def java_home() -> str | None:
    """Return the JDK directory from ``JAVA_HOME``; None if it is not set."""
    return os.environ.get("JAVA_HOME") or None


def tool_environment(**changes: str) -> dict[str, str]:
    """Return the environment for package managers and compilers, with `changes`.

    It is the user's own without the settings, so that the user's mirrors and proxies apply.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | changes
