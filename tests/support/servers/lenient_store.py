# SPDX-License-Identifier: Apache-2.0
"""An S3 store with a session service on loopback, in memory. It enforces session policies, except for chosen requests.

The policies are evaluated by `gateway.storage.s3.aws.proof`. Signatures are not verified: the access key in a request
names its session.
"""

from __future__ import annotations

import hashlib
import html
import re
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from gateway.storage.s3.aws.proof import Dialect, evaluate

BUCKET: Final = "warehouse"
OWN_KEY: Final = "AKGATEWAY"

#: The action that a policy must allow, by the kind of a request.
_ACTIONS: Final = {
    "read": "s3:GetObject",
    "head": "s3:GetObject",
    "write": "s3:PutObject",
    "multipart-upload": "s3:PutObject",
    "copy": "s3:PutObject",
    "copy-part": "s3:PutObject",
    "abort": "s3:AbortMultipartUpload",
    "delete": "s3:DeleteObject",
    "delete-batch": "s3:DeleteObject",
    "list": "s3:ListBucket",
    "list-folders": "s3:ListBucket",
    "list-versions": "s3:ListBucketVersions",
    "list-uploads": "s3:ListBucketMultipartUploads",
    "put-object-acl": "s3:PutObjectAcl",
    "put-object-tagging": "s3:PutObjectTagging",
    "create-bucket": "s3:CreateBucket",
    "list-buckets": "s3:ListAllMyBuckets",
}
SETTINGS: Final = ("policy", "acl", "lifecycle", "cors", "versioning", "encryption", "replication", "notification")
ADMIN_PATHS: Final = ("/minio/admin/v3/info", "/minio/admin/v3/list-users", "/admin/user", "/admin/bucket")
SERVICE_ACTIONS: Final = {
    "GetSessionToken": "get-session-token",
    "GetFederationToken": "get-federation-token",
    "ListUsers": "list-users",
    "CreateUser": "create-user",
    "DeleteUser": "delete-user",
    "AssumeRole": "assume-role",
}


@dataclass(frozen=True)
class Request:
    """A parsed request. `session` is the access key of a session, empty for the gateway's own key."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    session: str

    @property
    def key(self) -> str:
        return unquote(self.path.removeprefix(f"/{BUCKET}").removeprefix("/"))

    @property
    def unsigned(self) -> str | None:
        """The name of a request without a true signature, as in the canary's findings."""
        by_query, header = self.query.get("X-Amz-Signature"), self.headers.get("authorization")
        if by_query is None and header is None:
            return "unsigned-read" if self.method == "GET" else "unsigned-write"
        if by_query == "0" * 64:
            return "forged-write-by-query"
        return "forged-write" if header is not None and header.endswith("Signature=" + "0" * 64) else None

    @property
    def kind(self) -> str:
        """The name of the request, as in the canary's findings."""
        if self.method == "POST" and self.path == "/":
            return SERVICE_ACTIONS.get(self.form.get("Action", ""), "unknown")
        if self.path in ADMIN_PATHS:
            return f"admin {self.path}"
        if not self.path.startswith(f"/{BUCKET}"):
            return "list-buckets" if self.path == "/" else "create-bucket"
        for name, kind in (("uploads", "list-uploads"), ("versions", "list-versions")):
            if name in self.query and self.method == "GET":
                return kind
        if not self.key and self.method == "GET":
            setting = next((name for name in SETTINGS if name in self.query), None)
            if setting is not None:
                return f"get-bucket-{setting}"
            return "list-folders" if "delimiter" in self.query else "list"
        return self._of_object()

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    def _of_object(self) -> str:
        copies = "x-amz-copy-source" in self.headers
        match self.method:
            case "GET":
                return "read"
            case "HEAD":
                return "head"
            case "POST":
                return "delete-batch" if "delete" in self.query else "multipart-upload"
            case "DELETE":
                return "abort" if "uploadId" in self.query else "delete"
            case "PUT" if "acl" in self.query or "tagging" in self.query:
                return "put-object-acl" if "acl" in self.query else "put-object-tagging"
            case _:
                return ("copy-part" if "partNumber" in self.query else "copy") if copies else "write"


class LenientStore(ThreadingHTTPServer):
    """The store. Requests of the kinds in `lets_through` need no right. `broken` kinds get 500. New objects must name
    the key `requires_key`, if there is one.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, lets_through: Collection[str], broken: Collection[str], requires_key: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.lets_through, self.broken = frozenset(lets_through), frozenset(broken)
        self.requires_key = requires_key
        self.objects: dict[str, bytes] = {}
        self.policies: dict[str, str] = {}
        self.uploads: dict[str, str] = {}
        self.buckets = {BUCKET}
        self.users: set[str] = set()
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that were disconnected."""

    def answer(self, request: Request) -> tuple[int, str | bytes]:
        if request.unsigned is not None and request.kind in ("read", "write"):
            if request.unsigned not in self.lets_through:
                return 403, _error("AccessDenied")
            with self.lock:
                return self._carry_out(request)
        if request.session and request.kind in self.broken:
            return 500, _error("InternalError")
        if request.session and self._lacks_key(request):
            return 403, _error("AccessDenied")
        if request.session and request.kind not in self.lets_through and not self._may(request):
            return 403, _error("AccessDenied")
        with self.lock:
            return self._carry_out(request)

    def _lacks_key(self, request: Request) -> bool:
        if self.requires_key is None or request.kind not in ("write", "copy", "multipart-upload"):
            return False
        return request.headers.get("x-amz-server-side-encryption-aws-kms-key-id") != self.requires_key

    def _may(self, request: Request) -> bool:
        if request.kind not in _ACTIONS:
            return False
        if request.kind == "delete-batch":
            return True  # decided for each key
        if request.kind in ("list", "list-folders"):
            context = {"s3:prefix": request.query["prefix"]} if "prefix" in request.query else {}
            return self._allows(request, "s3:ListBucket", None, context)
        if not self._allows(request, _ACTIONS[request.kind], request.key or None, {}):
            return False
        source = request.headers.get("x-amz-copy-source")
        return source is None or self._allows(request, "s3:GetObject", _source(source), {})

    def _allows(self, request: Request, action: str, key: str | None, context: dict[str, str]) -> bool:
        policy = self.policies[request.session]
        return evaluate(policy, action, bucket=BUCKET, key=key, context=context, dialect=Dialect.CASE_BLIND)

    def _carry_out(self, request: Request) -> tuple[int, str | bytes]:
        kind, key = request.kind, request.key
        match kind:
            case "read" | "head":
                return (200, self.objects[key]) if key in self.objects else (404, _error("NoSuchKey"))
            case "write":
                if request.headers.get("if-none-match") == "*" and key in self.objects:
                    return 412, _error("PreconditionFailed")
                self.objects[key] = request.body
            case "copy":
                self.objects[key] = self.objects[_source(request.headers["x-amz-copy-source"])]
                return 200, "<CopyObjectResult/>"
            case "copy-part":
                return 200, "<CopyPartResult/>"
            case "multipart-upload":
                id = secrets.token_hex(4)
                self.uploads[id] = key
                return 200, f"<R><UploadId>{id}</UploadId></R>"
            case "abort":
                self.uploads.pop(request.query["uploadId"], None)
            case "delete":
                if request.path.startswith(f"/{BUCKET}"):
                    self.objects.pop(key, None)
                return 204, ""
            case "delete-batch":
                return 200, self._delete_batch(request)
            case "list" | "list-folders":
                return 200, self._listing(request)
            case _:
                return self._control(request)
        return 200, ""

    def _delete_batch(self, request: Request) -> str:
        results = []
        for key in map(html.unescape, re.findall(r"<Key>([^<]*)</Key>", request.body.decode())):
            may = not request.session or "delete-batch" in self.lets_through
            if may or self._allows(request, "s3:DeleteObject", key, {}):
                self.objects.pop(key, None)
                results.append(f"<Deleted><Key>{key}</Key></Deleted>")
            else:
                results.append(f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>no</Message></Error>")
        return f"<DeleteResult>{''.join(results)}</DeleteResult>"

    def _listing(self, request: Request) -> str:
        prefix, names = request.query.get("prefix", ""), sorted(self.objects)
        names = [name for name in names if name.startswith(prefix)]
        folders: set[str] = set()
        if "delimiter" in request.query:
            folders = {
                prefix + name[len(prefix) :].partition("/")[0] + "/" for name in names if "/" in name[len(prefix) :]
            }
            names = [name for name in names if "/" not in name[len(prefix) :]]
        now = "2026-01-01T00:00:00.000Z"
        shown = "".join(
            f"<Contents><Key>{html.escape(name)}</Key><LastModified>{now}</LastModified><Size>1</Size><ETag>e</ETag></Contents>"
            for name in names
        )
        shown += "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated><Prefix>{prefix}</Prefix>{shown}</ListBucketResult>"

    def _control(self, request: Request) -> tuple[int, str]:
        match request.kind:
            case "assume-role":
                return 200, self._session(request.form.get("Policy", ""))
            case "get-session-token" | "get-federation-token":
                return 200, "<R><SecretAccessKey>secret</SecretAccessKey></R>"
            case "list-versions" | "list-uploads":
                return 200, "<R>" + "".join(f"<Key>{name}</Key>" for name in sorted(self.objects)) + "</R>"
            case "create-bucket":
                name = request.path.strip("/")
                self.buckets ^= {name}
            case "create-user":
                self.users.add(request.form["UserName"])
                return 200, "<CreateUserResult/>"
            case "list-users":
                return 200, "<ListUsersResult/>"
            case "get-bucket-policy":
                return 404, _error("NoSuchBucketPolicy")
            case "list-buckets":
                return 200, "<R><Buckets><Bucket><Name>warehouse</Name></Bucket></Buckets></R>"
            case "delete-user":
                self.users.discard(request.form["UserName"])
        return 200, "<R/>"

    def _session(self, policy: str) -> str:
        id = "ASIA" + secrets.token_hex(4)
        self.policies[id] = policy
        expires = (datetime.now(UTC) + timedelta(seconds=900)).isoformat().replace("+00:00", "Z")
        fields = {"AccessKeyId": id, "SecretAccessKey": "s", "SessionToken": id, "Expiration": expires}
        inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
        space = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
        result = f"<AssumeRoleResult><Credentials>{inner}</Credentials></AssumeRoleResult>"
        return f"<AssumeRoleResponse {space}>{result}</AssumeRoleResponse>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LenientStore

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, text = self.server.answer(
            Request(self.command, parts.path, query, headers, body, headers.get("x-amz-security-token", ""))
        )
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        for name, value in (
            ("content-length", str(len(data))),
            ("etag", f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'),
            ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
            ("content-type", "application/xml"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        return None


def _error(code: str) -> str:
    return f"<Error><Code>{code}</Code><Message>no</Message></Error>"


def _source(header: str) -> str:
    return unquote(header).removeprefix("/").removeprefix(f"{BUCKET}/")


@contextmanager
def lenient_store(
    *, lets_through: Collection[str] = (), broken: Collection[str] = (), requires_key: str | None = None
) -> Iterator[LenientStore]:
    """Run a store, as `LenientStore` describes it."""
    server = LenientStore(lets_through, broken, requires_key)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
