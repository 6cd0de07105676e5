# SPDX-License-Identifier: Apache-2.0
"""Parse parts of a request that a client wants to send, signed, to an S3 store. Pure.

The parts are the URI, the headers and the body of a deletion.

The store must read the same key that was checked here. So a URI is accepted only in forms that every store reads in the
same way. It is then written again in the canonical form of signature version 4 (S3 API reference, "Authenticating
Requests").

Only listed headers are accepted. Headers that change what a request does (copies, access lists, tags, locks, redirects,
the bypass of a retention) are refused. Headers that only describe the connection or the client are left out of the
signature.

A store must find the same keys in the body of a deletion as this parser. So only documented elements are accepted (S3
API reference, "DeleteObjects"), and nothing that XML parsers treat differently: no document type, entities, comments,
processing instructions or attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit
from xml.etree import ElementTree

from gateway.scope.credential import RepeatedListParameter, RequestUriMismatch, UnsupportedSignRequest
from gateway.scope.location import shown
from gateway.storage.s3.profile import Flavor, S3Profile, SigningUrlStyle

__all__ = [
    "MAX_BODY",
    "MAX_KEYS",
    "MAX_URI",
    "SignedUri",
    "canonical_query",
    "headers_to_sign",
    "keys_to_delete",
    "parse_uri",
]

MAX_URI: Final = 8192
MAX_KEY_BYTES: Final = 1024  # S3 user guide, "Creating object key names"

# Not a raw plus sign, which some stores read as a space, no fragment, and no other character outside of RFC 3986.
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
    """Return the canonical query string: encoded, and sorted by name. Every parameter has a `=`, even without a
    value.
    """
    pairs = sorted(
        (quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in parameters.items()
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _bucket_in_host(profile: S3Profile, start: str) -> bool | None:
    """Return True if the bucket is in the host, False if it is in the path, None if the URI is for another server."""
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
    """Return True if the store reads the bucket from the host: AWS does, and so does a store that the gateway reaches
    in this way.

    Any other store reads the first part of the key as the bucket. There, a signature for the key `other/f` with the
    host of this bucket would be one for `f` in the bucket `other`.
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
    """Raise an error if a client, a proxy or a store may read the key as another key."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise RequestUriMismatch(f"An object key must have at most {MAX_KEY_BYTES} bytes")
    current, decoded = b"", key.encode()
    while current != decoded:  # a store or proxy may decode the key a second time
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


MAX_HEADERS: Final = 64
MAX_VALUE: Final = 1024

#: Headers that are left out of the signature: HTTP libraries and proxies change or add them, or they have no effect on
#: the store. Clients send them unsigned.
_NOT_SIGNED: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
        "amz-sdk-retry",
        "authorization",
        "connection",
        "content-length",
        "expect",
        "host",
        "range",
        "te",
        "transfer-encoding",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-user-agent",
        "x-amzn-trace-id",
    }
)

#: Headers that are signed with the value that the client sends, if the value has this form.
_TEXT: Final = re.compile(r"[\x20-\x7e]*", re.ASCII)
_SIGNED: Final[Mapping[str, re.Pattern[str]]] = {
    "cache-control": _TEXT,
    "content-disposition": _TEXT,
    "content-encoding": _TEXT,
    "content-language": _TEXT,
    "content-md5": re.compile(r"[A-Za-z0-9+/=]{24}", re.ASCII),
    "content-type": _TEXT,
    "if-match": _TEXT,
    "if-modified-since": _TEXT,
    "if-none-match": _TEXT,
    "if-unmodified-since": _TEXT,
    "x-amz-checksum-algorithm": re.compile(r"[A-Z0-9]{1,16}", re.ASCII),
    "x-amz-checksum-mode": re.compile(r"ENABLED", re.ASCII),
    "x-amz-checksum-type": re.compile(r"[A-Z_]{1,16}", re.ASCII),
    "x-amz-decoded-content-length": re.compile(r"[0-9]{1,15}", re.ASCII),
    "x-amz-mp-object-size": re.compile(r"[0-9]{1,15}", re.ASCII),
    "x-amz-sdk-checksum-algorithm": re.compile(r"[A-Z0-9]{1,16}", re.ASCII),
    "x-amz-server-side-encryption": re.compile(r"AES256|aws:kms", re.ASCII),
    "x-amz-server-side-encryption-bucket-key-enabled": re.compile(r"true|false", re.ASCII),
    "x-amz-te": re.compile(r"append-md5", re.ASCII),  # the Java client requests a checksum after the body
    "x-amz-trailer": re.compile(r"x-amz-checksum-[a-z0-9]{1,16}", re.ASCII),
    # Only classes that are readable without a restore: with others, a writer could make a file unreadable for days.
    "x-amz-storage-class": re.compile(
        r"STANDARD|STANDARD_IA|ONEZONE_IA|INTELLIGENT_TIERING|REDUCED_REDUNDANCY|GLACIER_IR", re.ASCII
    ),
}
#: The gateway replaces these headers: it makes the parts of the signature, and takes the host from the URI.
_REPLACED: Final = frozenset({"authorization", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"})
_CHECKSUM: Final = re.compile(r"x-amz-checksum-(crc32|crc32c|crc64nvme|sha1|sha256)", re.ASCII)
_CHECKSUM_VALUE: Final = re.compile(r"[A-Za-z0-9+/=]{4,64}(-[0-9]{1,5})?", re.ASCII)
_KMS_KEY: Final = "x-amz-server-side-encryption-aws-kms-key-id"


def headers_to_sign(
    profile: S3Profile, method: str, headers: Sequence[tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (headers to sign, headers to send unsigned), by their names in lower case.

    Raises UnsupportedSignRequest for a header that is unknown, has a value that is not allowed, or occurs more than
    once.
    """
    if len(headers) > MAX_HEADERS:
        raise UnsupportedSignRequest(f"A request to sign must have at most {MAX_HEADERS} headers")
    found: dict[str, str] = {}
    unsigned: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in _NOT_SIGNED:
            if lower not in _REPLACED and len(value) <= MAX_VALUE and _TEXT.fullmatch(value):
                unsigned[lower] = value
            continue
        if not _is_known(profile, lower, value):
            raise UnsupportedSignRequest(
                f"The header {shown(name)} of a {shown(method)} request is not signed with this value. Remove it; the "
                "documentation of remote signing lists the headers that are signed"
            )
        if lower in found:
            raise UnsupportedSignRequest(f"The header {shown(name)} occurs more than once in the request to sign")
        found[lower] = value.strip()
    return found, unsigned


def _is_known(profile: S3Profile, name: str, value: str) -> bool:
    if len(value) > MAX_VALUE:
        return False
    if name == _KMS_KEY:
        # Another KMS key would let the holder of that key read the files, and could make them unreadable for all
        # others.
        return profile.aws_kms_key_arn is not None and value == profile.aws_kms_key_arn
    pattern = _CHECKSUM_VALUE if _CHECKSUM.fullmatch(name) else _SIGNED.get(name)
    return pattern is not None and pattern.fullmatch(value) is not None


MAX_KEYS: Final = 1000  # S3 API reference, DeleteObjects
MAX_BODY: Final = 2_000_000

_NAMESPACE: Final = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_DECLARATION: Final = re.compile(rb"\A\s*<\?xml version=[\"']1\.[01][\"']( encoding=[\"'](?i:utf-8)[\"'])?\s*\?>")
# Matches a reference to any other entity than the five predefined ones and characters, which all XML parsers know.
_ENTITY: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


def keys_to_delete(body: bytes) -> tuple[str, ...]:
    """Return the keys in the body of a deletion, between 1 and 1,000. Raises UnsupportedSignRequest for any other
    body.
    """
    if len(body) > MAX_BODY:
        raise UnsupportedSignRequest(f"The body of a deletion must have at most {MAX_BODY} bytes")
    content = _DECLARATION.sub(b"", body, count=1)
    if b"<!" in content or b"<?" in content or _ENTITY.search(content):
        raise _malformed("it has a document type, an entity, a comment or an instruction")
    try:
        # A document type and entities of its own were refused above, so the parser has nothing to expand.
        root = ElementTree.fromstring(content.decode())  # noqa: S314 - same
    except (ElementTree.ParseError, UnicodeDecodeError):
        raise _malformed("it is not XML in UTF-8") from None
    if _name(root) != "Delete":
        raise _malformed("its root must be Delete")
    keys: list[str] = []
    for element in root:
        match _name(element):
            case "Object":
                keys.append(_key(element))
            case "Quiet" if (element.text or "").strip() in ("true", "false") and not len(element):
                continue
            case _:
                raise _malformed("it may have only the elements Object and Quiet")
    if not 1 <= len(keys) <= MAX_KEYS:
        raise _malformed(f"it must have 1 to {MAX_KEYS} objects")
    return tuple(keys)


def _key(element: ElementTree.Element) -> str:
    """Return the key in an object element. Raises UnsupportedSignRequest if the element has a version, a size or a
    condition.
    """
    names = [_name(child) for child in element]
    if names != ["Key"] or len(element[0]) or not element[0].text:
        raise _malformed("each object must have a key and nothing else")
    return element[0].text


def _name(element: ElementTree.Element) -> str:
    if element.attrib:
        raise _malformed("its elements must have no attributes")
    return element.tag.removeprefix(_NAMESPACE)


def _malformed(reason: str) -> UnsupportedSignRequest:
    return UnsupportedSignRequest(f"The body of the deletion cannot be signed: {reason}")
