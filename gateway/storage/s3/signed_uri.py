# SPDX-License-Identifier: Apache-2.0
"""Read the URI of a request to an S3 store: bucket, key and parameters. Pure.

A store and a check must read the same bytes. So a URI is accepted only in forms that every store reads in one way, and
is written again in the canonical form of signature version 4 (S3 API reference, "Authenticating Requests").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

from gateway.scope.location import shown
from gateway.scope.signing import RepeatedListParameter, RequestUriMismatch, UnsupportedSignRequest
from gateway.storage.s3.profile import Flavor, S3Profile, SigningUrlStyle

__all__ = ["MAX_URI", "SignedUri", "canonical_query", "parse_uri"]

MAX_URI: Final = 8192
MAX_KEY_BYTES: Final = 1024  # S3 user guide, "Creating object key names"

# A raw plus sign is a space for some stores. Other characters outside of RFC 3986, and fragments, are refused.
_PATH: Final = re.compile(r"/(?:[A-Za-z0-9/._~!$&'()*,;=:@-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_QUERY: Final = re.compile(r"(?:[A-Za-z0-9/._~!$'()*,;=:@?&-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_UNRESERVED: Final = "-_.~"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUri:
    """A URI of the profile's bucket. `key` is decoded, and empty for the bucket itself. `parameters` are decoded.

    `start` is everything before the path, and `path` the canonical path.
    """

    start: str
    path: str
    key: str
    parameters: Mapping[str, str]

    @property
    def text(self) -> str:
        """Return the URI in canonical form."""
        query = canonical_query(self.parameters)
        return f"{self.start}{self.path}" + (f"?{query}" if query else "")


def parse_uri(profile: S3Profile, uri: str) -> SignedUri:
    """Parse the URI of a request to the profile's bucket.

    Raises RequestUriMismatch for another server or bucket and for an ambiguous path, RepeatedListParameter, and
    UnsupportedSignRequest for a URI of another form.
    """
    if len(uri) > MAX_URI:
        raise UnsupportedSignRequest(f"The URI to sign must have at most {MAX_URI} characters")
    if not uri.isascii() or not uri.isprintable() or "#" in uri or "\\" in uri or " " in uri:
        raise UnsupportedSignRequest("The URI to sign must be percent-encoded, and must have no fragment")
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise UnsupportedSignRequest("The URI to sign is malformed") from None
    start = f"{parts.scheme.lower()}://{parts.netloc.lower()}"
    in_host = _bucket_in_host(profile, start)
    if in_host is None:
        raise RequestUriMismatch(
            f"The URI to sign is for the server {shown(start)}, which is not the store of this warehouse"
        )
    path = parts.path or "/"
    if not _PATH.fullmatch(path):
        raise UnsupportedSignRequest("The path of the URI to sign has characters that must be percent-encoded")
    text = _decoded(path)[1:]
    prefix = "/"
    if not in_host:
        bucket, _, text = text.partition("/")
        if bucket != profile.bucket:
            raise RequestUriMismatch(
                f"The URI to sign is for the bucket {shown(bucket)}, which is not the bucket of this warehouse"
            )
        prefix = f"/{bucket}/" if text or path.endswith("/") else f"/{bucket}"
    _check_key(text)
    canonical = prefix + quote(text, safe="/" + _UNRESERVED)
    return SignedUri(start=start, path=canonical, key=text, parameters=_parameters(parts.query))


def canonical_query(parameters: Mapping[str, str]) -> str:
    """Return the canonical query string: encoded, and sorted by name. Each parameter has a `=`."""
    pairs = sorted(
        (quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in parameters.items()
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _bucket_in_host(profile: S3Profile, start: str) -> bool | None:
    """Return True if the host contains the bucket, False if the path does, None for another server."""
    style = profile.remote_signing_url_style
    hosts = style is SigningUrlStyle.VIRTUAL_HOST or (style is SigningUrlStyle.AUTO and _knows_hosts(profile))
    for server in _servers(profile):
        scheme, _, host = server.partition("://")
        if hosts and start == f"{scheme}://{profile.bucket}.{host}":
            return True
        if style is not SigningUrlStyle.VIRTUAL_HOST and start == server:
            return False
    return None


def _knows_hosts(profile: S3Profile) -> bool:
    """Return True if the store finds the bucket in the host: AWS does, and a store that the gateway reaches so.

    Another store takes the first part of the key for the bucket. A signature for `other/f` in the host of this bucket
    would then be one for `f` in the bucket `other`.
    """
    return profile.endpoint is None or not (profile.path_style_access or "." in profile.bucket)


def _servers(profile: S3Profile) -> tuple[str, ...]:
    """Return the addresses of the profile's store, as `scheme://host[:port]` (AWS reference, "Amazon S3 endpoints")."""
    if profile.endpoint is not None:
        scheme, _, host = profile.endpoint.lower().partition("://")
        default = ":443" if scheme == "https" else ":80"
        plain = f"{scheme}://{host.removesuffix(default)}"
        return (plain, plain if host.rpartition(":")[2].isdigit() and not host.endswith(default) else plain + default)
    suffix = "amazonaws.com.cn" if profile.partition == "aws-cn" else "amazonaws.com"
    region = profile.region
    names = [f"s3.{region}.{suffix}", f"s3.dualstack.{region}.{suffix}", f"s3-fips.{region}.{suffix}"]
    if profile.flavor is Flavor.AWS and region == "us-east-1":
        names.append(f"s3.{suffix}")
    return tuple(f"https://{name}{port}" for name in names for port in ("", ":443"))


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise UnsupportedSignRequest("The URI to sign does not contain UTF-8") from None


def _check_key(key: str) -> None:
    """Refuse keys that a client, a proxy or a store may read as another key."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise RequestUriMismatch(f"An object key has at most {MAX_KEY_BYTES} bytes")
    current, decoded = b"", key.encode()
    while current != decoded:  # also for a store or proxy that decodes again
        if any(segment in (b".", b"..") for segment in decoded.split(b"/")):
            raise RequestUriMismatch("The path of the URI to sign must not contain the segments '.' or '..'")
        current, decoded = decoded, unquote_to_bytes(decoded)
    if "//" in key or key.startswith("/"):
        raise RequestUriMismatch("The path of the URI to sign must not contain an empty segment")
    if "\\" in key or any(ord(character) < 0x20 or ord(character) == 0x7F for character in key):
        raise RequestUriMismatch("The path of the URI to sign must not contain a backslash or a control character")


def _parameters(query: str) -> dict[str, str]:
    if not _QUERY.fullmatch(query):
        raise UnsupportedSignRequest("The query of the URI to sign has characters that must be percent-encoded")
    found: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, _, value = (_decoded(part) for part in pair.partition("="))
        if not name:
            raise UnsupportedSignRequest("The query of the URI to sign has a parameter without a name")
        if name in found:
            raise RepeatedListParameter(f"The parameter {shown(name)} occurs more than once in the URI to sign")
        found[name] = value
    return found
