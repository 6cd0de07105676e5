# SPDX-License-Identifier: Apache-2.0
"""Storage profiles of Azure Data Lake Storage Gen2: the location of a warehouse's files and the settings of its
credentials.

Locations have the form `abfss://filesystem@account.host/path`. The creator of a warehouse chooses an account and a
filesystem, and the gateway's identity may reach more of them than the creator. So the operator lists the filesystems
that may be used with this identity. The rule is checked at every use, because settings can change.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_bytes
from typing import Any, ClassVar, Final

from gateway.scope.credential import AccessLevel, TemporaryCredential
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import BaseLocation, DefaultLayout, Location, Scheme, StorageLayout, shown
from gateway.scope.profile import Downscoping, IdentityRules, NoVending, StorageProfile, StorageRules
from gateway.storage.adls.credential import AdlsSas, AdlsSystemIdentity, AnyAdlsCredential, decode_adls_credential
from gateway.storage.adls.proof import prove_scope
from gateway.storage.adls.sas import build_directory, read_directory, sign_with_account
from gateway.storage.provider import Provider, opens
from gateway.storage.stored import StoredProfile, base_below, check_key_prefix, decode_stored_profile, identity_disabled

__all__ = [
    "ADLS",
    "AUTHORITIES",
    "HOST",
    "HOSTS",
    "SCHEME",
    "AdlsProfile",
    "blob_host",
    "check_account",
    "check_filesystem",
    "decode_adls_profile",
    "identity_refusal",
]

MAX_PATH_BYTES: Final = 1024  # "Naming and referencing containers, blobs, and metadata", blob names
HOSTS: Final = ("dfs.core.windows.net", "dfs.core.usgovcloudapi.net", "dfs.core.chinacloudapi.cn")
"""The hosts of Azure's public and sovereign clouds."""

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}", re.ASCII)
_FILESYSTEM: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}", re.ASCII)
HOST: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.ASCII)


def check_account(name: str) -> None:
    """Raise `InvalidLocation` unless the name is a name of a storage account ("Storage account overview")."""
    if not _ACCOUNT.fullmatch(name):
        raise InvalidLocation(f"Storage account {shown(name)} must have 3 to 24 characters of a-z and 0-9")


def check_filesystem(name: str) -> None:
    """Raise `InvalidLocation` unless the name is a name of a container.

    The rules are in "Naming and referencing containers, blobs, and metadata".
    """
    if not 3 <= len(name) <= 63 or not _FILESYSTEM.fullmatch(name):
        raise InvalidLocation(
            f"File system {shown(name)} must have 3 to 63 characters of a-z, 0-9 and single hyphens, and begin and end "
            "with a letter or digit"
        )


def blob_host(host: str) -> str:
    """Return the host of the blob service that belongs to a host of the file service, for example
    `blob.core.windows.net`.
    """
    return host.replace("dfs.", "blob.", 1)


def _check_authority(authority: str) -> None:
    filesystem, at, server = authority.partition("@")
    account, _, host = server.partition(".")
    if not at or not HOST.fullmatch(host):
        raise InvalidLocation(f"Location must have the form abfss://filesystem@account.{HOSTS[0]}/path")
    check_filesystem(filesystem)
    check_account(account)


def _check_segment(segment: str) -> None:
    if segment.endswith("."):
        raise InvalidLocation(
            f"Path segment {shown(segment)} must not end with a dot: Azure drops the dot, so two names would mean one "
            "directory"
        )
    if "%" in segment:
        raise InvalidLocation(
            f"Path segment {shown(segment)} must not contain a percent sign: some of Azure's clients decode names, so "
            "one name could mean two directories"
        )


SCHEME: Final = Scheme(
    names=("abfss", "abfs", "wasbs", "wasb"),
    check_authority=_check_authority,
    max_path_bytes=MAX_PATH_BYTES,
    path_noun="a path in a file system",
    root_noun="the root of a file system",
    check_segment=_check_segment,
)


MAX_KEY_PREFIX: Final = 512
MIN_SAS_SECONDS: Final = 60
MAX_SAS_SECONDS: Final = 604800  # "Create a user delegation SAS": a delegation key lives for at most seven days
MAX_SECONDS_ELSEWHERE: Final = 3600
"""OneLake accepts signatures for at most one hour ("OneLake shared access signature overview")."""
AUTHORITIES: Final = (
    "https://login.microsoftonline.com",
    "https://login.microsoftonline.us",
    "https://login.chinacloudapi.cn",
)
_ALTERNATIVE_PROTOCOLS: Final = ("wasbs", "wasb", "abfs")


class AdlsProfile(StoredProfile, frozen=True, kw_only=True, tag="adls"):
    """A warehouse in a file system of an account with hierarchical namespace. `key_prefix` has no leading or trailing
    slash. Durations are whole seconds.

    Construction checks the fields and raises `InvalidStorageProfile` and `InvalidLocation`. `check` allows Azure's own
    hosts and those that the operator listed: otherwise the creator of a profile could have a token sent to any server.
    """

    provider: ClassVar[str] = "adls"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("account_name", "filesystem", "key_prefix", "host")
    credential_kind: ClassVar[str | None] = "client-credentials"
    no_contact: ClassVar[str] = (
        "The storage cannot be used. Possible causes: the account or the file system does not exist; the account has "
        "no hierarchical namespace; its firewall does not admit the gateway; Azure's servers do not answer in time"
    )

    account_name: str
    filesystem: str
    key_prefix: str | None = None
    host: str = HOSTS[0]
    authority_host: str = AUTHORITIES[0]
    sas_enabled: bool = True
    sas_token_validity_seconds: int = 3600
    allow_alternative_protocols: bool = False
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        check_account(self.account_name)
        check_filesystem(self.filesystem)
        if not HOST.fullmatch(self.host):
            raise InvalidStorageProfile(f"Storage profile field 'host' must be a host name such as {HOSTS[0]}")
        if self.authority_host not in AUTHORITIES:
            raise InvalidStorageProfile(
                f"Storage profile field 'authority-host' must be one of {', '.join(AUTHORITIES)}"
            )
        if not MIN_SAS_SECONDS <= self.sas_token_validity_seconds <= MAX_SAS_SECONDS:
            raise InvalidStorageProfile(
                f"Storage profile field 'sas-token-validity-seconds' must be from {MIN_SAS_SECONDS} to "
                f"{MAX_SAS_SECONDS}"
            )
        prefix = self.key_prefix
        if prefix is None:
            return
        check_key_prefix(prefix, MAX_KEY_PREFIX)
        self.base_location()

    @property
    def server(self) -> str:
        """Return the host name of the account: `account.dfs.core.windows.net`."""
        return f"{self.account_name}.{self.host}"

    @property
    def escapes_known(self) -> bool:
        """Return True: a signature contains the directory itself, in which no character has a special meaning."""
        return True

    @property
    def downscoping(self) -> Downscoping | NoVending:
        """The confinement by SAS tokens for one directory, or NoVending if `sas-enabled` is false."""
        if not self.sas_enabled:
            return NoVending(
                reason="sas-enabled is false in the storage profile",
                skipped="sas-enabled is false, so this warehouse issues no credentials",
            )
        seconds = self.sas_token_validity_seconds
        if self.host not in HOSTS:
            seconds = min(seconds, MAX_SECONDS_ELSEWHERE)
        return Downscoping(seconds, None, build_directory, shortest_seconds=MIN_SAS_SECONDS)

    def base_location(self) -> BaseLocation:
        """Return the location that contains the whole warehouse. It is a `Location` if the profile has a key prefix."""
        return base_below(SCHEME, f"{self.filesystem}@{self.server}", self.key_prefix)

    def parse_location(self, text: str) -> Location:
        """Parse `abfss://filesystem@account.host/path`, strictly below the base. Raises `InvalidLocation`.

        The alternative protocols, which the profile may allow, name the host of the blob service.
        """
        name, _, rest = text.partition("://")
        allowed = ("abfss", *(_ALTERNATIVE_PROTOCOLS if self.allow_alternative_protocols else ()))
        if name.lower() not in allowed:
            raise InvalidLocation(
                f"Location scheme {ascii(name[:20])} is not allowed in this warehouse. Allowed schemes: "
                f"{', '.join(allowed)}"
            )
        of_blobs = f"@{self.account_name}.{blob_host(self.host)}"
        authority, slash, path = rest.partition("/")
        if name.lower() in ("wasb", "wasbs") and authority.endswith(of_blobs):
            authority = f"{authority.removesuffix(of_blobs)}@{self.server}"
        location = SCHEME.parse(f"{SCHEME.name}://{authority}{slash}{path}", escapes_known=True)
        return self.require_below(location)

    def check(self, rules: StorageRules) -> None:
        """Check that the host is allowed, because it receives tokens of the warehouse's identity."""
        if self.host not in HOSTS and rules.hosts is not None and self.host not in rules.hosts:
            raise InvalidStorageProfile(
                f"Storage profile field 'host' must be one of {', '.join((*HOSTS, *rules.hosts))}. The operator can "
                "list further hosts in LAKEGATE__STORAGE__ADLS_HOSTS"
            )

    def endpoints(self) -> dict[str, str]:
        """Return the servers of the profile, except Azure's public ones."""
        named = {"host": (self.host, HOSTS[0]), "authority_host": (self.authority_host, AUTHORITIES[0])}
        return {name: value for name, (value, default) in named.items() if value != default}

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return the account and its hosts. With `temporary` also signature, expiry (milliseconds since 1970) and
        refresh.

        Java reads the property names that contain the host of the account, PyIceberg those without a suffix, and older
        clients those that contain only the account.
        """
        properties = {"adls.account-name": self.account_name}
        if self.host != HOSTS[0]:
            # PyIceberg's names. Without these properties, both of its clients use the hosts of the public cloud.
            properties["adls.account-host"] = f"{self.account_name}.{blob_host(self.host)}"
            properties["adls.blob-storage-authority"] = f".{blob_host(self.host)}"
            properties["adls.dfs-storage-authority"] = f".{self.host}"
        if temporary is None:
            return properties
        if not isinstance(temporary, AdlsSas):
            raise TypeError(f"a {type(temporary).__name__} is no signature of Azure storage")
        expires_ms = str(int(temporary.expires_at.timestamp() * 1000))
        for name in (self.server, self.account_name):
            properties[f"adls.sas-token.{name}"] = temporary.token
            properties[f"adls.sas-token-expires-at-ms.{name}"] = expires_ms
        properties["adls.sas-token"] = temporary.token
        properties["expiration-time"] = expires_ms
        if refresh_endpoint is not None:
            properties["adls.refresh-credentials-endpoint"] = refresh_endpoint
            properties["adls.refresh-credentials-enabled"] = "true"
        return properties


def decode_adls_profile(fields: dict[str, Any], rules: StorageRules) -> AdlsProfile:
    """Decode `{"type":"adls",…}`. Raises `InvalidStorageProfile`, and `InvalidLocation` for names and key prefix."""
    if isinstance(fields.get("authority-host"), str):
        fields["authority-host"] = fields["authority-host"].removesuffix("/")
    nullable = ("host", "authority-host", "sas-token-validity-seconds")
    profile = decode_stored_profile(AdlsProfile, fields, nullable=nullable)
    profile.check(rules)
    return profile


def _prove(profile: StorageProfile, location: Location, level: AccessLevel, other_keys: Sequence[str]) -> list[str]:
    """Prove the scope of a signature by the account's key. A signature by a delegation key differs only in the lines of
    that key.
    """
    key, start = token_bytes(32), datetime.now(UTC)
    directory = read_directory(build_directory(location, level))
    signature = sign_with_account(directory, key, start=start, expiry=start + timedelta(hours=1))
    return [str(violation) for violation in prove_scope(signature, key, location, level, other_keys)]


ADLS: Final = Provider(
    profile=AdlsProfile,
    scheme=SCHEME,
    allowed=lambda rules: True,
    decode_profile=decode_adls_profile,
    decode_credential=decode_adls_credential,
    open=opens("gateway.storage.adls.client"),
    prove=_prove,
    credential_type="az",
    aliases=("azdls",),
)


def identity_refusal(profile: AdlsProfile, credential: AnyAdlsCredential, rules: IdentityRules) -> str | None:
    """Return the reason why the credential may not be used for the filesystem of this profile; None if it may."""
    store = f"{profile.account_name}/{profile.filesystem}"
    if not isinstance(credential, AdlsSystemIdentity) or rules.allows_directly(store):
        return None
    if not rules.enabled:
        return identity_disabled(AdlsSystemIdentity, "client-credentials")
    return (
        f"The operator does not allow the gateway's own identity for the filesystem {store!r}. The operator can list "
        "it in LAKEGATE__ADLS_SYSTEM_CREDENTIALS_FILESYSTEMS"
    )
