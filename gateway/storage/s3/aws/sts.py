# SPDX-License-Identifier: Apache-2.0
"""Make sessions by AssumeRole, with an inline session policy that limits a vended credential.

botocore blocks, so its calls run in a thread pool of this object: a hanging store must not occupy the threads of other
work. Only connection errors and 5xx are retried. AssumeRole changes nothing, so a retry is safe.
"""

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol, cast

import botocore.exceptions
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError

from gateway.scope.endpoint import EndpointRoute, RouteTo
from gateway.scope.profile import IdentityRules
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.provider import no_metrics
from gateway.storage.s3.aws.identity import SystemIdentity
from gateway.storage.s3.aws.identity_rules import require_sessions
from gateway.storage.s3.credential import (
    AnyS3Credential,
    S3SystemIdentity,
    S3TemporaryCredential,
    StsCredential,
)
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.s3.sessions import (
    KNOWN_CODES,
    LatencyCallback,
    Measured,
    by_code,
    malformed,
    refused_endpoint,
    route_to,
    temporary,
    unreachable,
)

__all__ = ["Sts"]

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 10.0
ATTEMPTS: Final = 3
MAX_CLIENTS: Final = 128
MAX_THREADS: Final = 8
DISABLED: Final = IdentityRules()

# Stores without roles (such as MinIO) require the parameter too; their session has the rights of the calling key.
_NO_ROLE: Final = "arn:aws:iam::000000000000:role/none"

# Statuses by which proxies and load balancers report that the server behind them is unavailable.
_OUTAGES: Final = frozenset({502, 503, 504})

_NO_IDENTITY: Final = (
    "The gateway could not get a temporary credential: it has no identity in AWS, or its identity could not be read"
)


class _StsClient(Protocol):
    def assume_role(self, **parameters: Any) -> dict[str, Any]: ...


class _NoIdentity:
    """A provider of no credentials, which prevents botocore from searching for some."""

    def load_credentials(self) -> None:
        """Return None: there are no credentials."""


class Sts:
    """Creates temporary credentials. Close it with `close`.

    `identity` is the gateway's own identity, used as `identity_rules` allow; None if it has none. `on_latency` is
    called on the event loop with the seconds of each call and its outcome (`ok` or the reason of the error). `route`
    returns the routes to the endpoints of profiles; without it only AWS's own endpoints are allowed.
    """

    def __init__(
        self,
        *,
        identity: SystemIdentity | None = None,
        identity_rules: IdentityRules = DISABLED,
        on_latency: LatencyCallback = no_metrics,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        ca_bundle: str | None = None,
        route: RouteTo | None = None,
    ) -> None:
        self._ca_bundle = ca_bundle
        self._route = route
        self._identity = identity
        self._identity_rules = identity_rules
        self._on_latency = on_latency
        self._config = {"connect_timeout": connect_seconds, "read_timeout": read_seconds}
        self._total_seconds = total_seconds
        self._clients: OrderedDict[tuple[str | None, str, str], _StsClient] = OrderedDict()
        # botocore's data about AWS, eight megabytes, shared by all clients.
        self._models = Loader()
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="sts")

    async def assume(
        self, *, profile: S3Profile, credential: StsCredential, policy: str, session_name: str, seconds: int
    ) -> S3TemporaryCredential:
        """Return a session of the profile's STS role with the rights of `policy`, for `seconds` (900 to 43,200).

        Raises `ShortTermCredentialError`, or `PolicyTooLarge` if the policy exceeds the store's packed limit.
        """
        if not policy.strip():
            raise ValueError("a session policy is required: without one the session has all rights of the role")
        parameters = {
            **self._session(profile, credential, profile.session_role_arn, session_name, seconds),
            "Policy": policy,
        }
        if profile.sts_session_tags:
            parameters["Tags"] = [{"Key": key, "Value": value} for key, value in profile.sts_session_tags.items()]
        return await self._measured(profile, credential, parameters, seconds)

    async def assume_own_role(
        self, profile: S3Profile, credential: StsCredential, *, session_name: str = "lakegate", seconds: int = 3600
    ) -> S3TemporaryCredential:
        """Return a session of `assume-role-arn` with all rights of the role, for the gateway's own files. It is never
        vended.
        """
        if profile.assume_role_arn is None:
            raise ValueError("the profile names no assume-role-arn")
        parameters = self._session(profile, credential, profile.assume_role_arn, session_name, seconds)
        return await self._measured(profile, credential, parameters, seconds)

    async def reassumes(self, profile: S3Profile, temporary: S3TemporaryCredential) -> bool:
        """Return True if the holder of a vended credential can assume the role again *without* a session policy, and so
        leave its prefix.

        Return False only if the store refuses. Raises `ShortTermCredentialError` for any other failure.
        """
        endpoint = profile.sts_endpoint or profile.endpoint
        route = self._route_to(endpoint)
        parameters = {"RoleArn": profile.session_role_arn or _NO_ROLE, "RoleSessionName": "lakegate-check"}
        try:
            async with asyncio.timeout(self._total_seconds):
                run = partial(asyncio.get_running_loop().run_in_executor, self._pool)
                # Created in a thread: the first client reads eight megabytes of files.
                client = await run(self._new_client, endpoint, profile.region, temporary, route)
                await run(self._call, client, parameters, time.monotonic(), route)
        except ShortTermCredentialError as error:
            if error.reason in {"refused", "credential"}:
                return False
            raise
        except TimeoutError:
            raise unreachable() from None
        return True

    def close(self) -> None:
        """Shut down the threads. Calls in progress end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _session(
        self, profile: S3Profile, credential: StsCredential, role: str | None, session_name: str, seconds: int
    ) -> dict[str, Any]:
        require_sessions(profile, credential, role, self._identity_rules)
        if role is None and profile.flavor is Flavor.AWS:
            raise ShortTermCredentialError(
                "The storage profile has neither sts-role-arn nor assume-role-arn", "profile"
            )
        parameters: dict[str, Any] = {
            "RoleArn": role or _NO_ROLE,
            "RoleSessionName": session_name,
            "DurationSeconds": seconds,
        }
        if credential.external_id is not None:
            parameters["ExternalId"] = credential.external_id
        return parameters

    async def _measured(
        self, profile: S3Profile, credential: StsCredential, parameters: dict[str, Any], seconds: int
    ) -> S3TemporaryCredential:
        started = time.monotonic()
        with Measured(self._on_latency):
            route = self._route_to(profile.sts_endpoint or profile.endpoint)
            try:
                async with asyncio.timeout(self._total_seconds):
                    run = partial(asyncio.get_running_loop().run_in_executor, self._pool)
                    client = await run(self._client, profile, credential, route)
                    answer = await run(self._call, client, parameters, started, route)
            except TimeoutError:
                raise unreachable() from None
            return temporary(answer, seconds)

    def _route_to(self, endpoint: str | None) -> EndpointRoute | None:
        """Return the route to a profile's STS endpoint; None for AWS's own. Raises ShortTermCredentialError."""
        if endpoint is None:
            return None
        if self._route is None:
            raise ShortTermCredentialError(
                "This gateway cannot connect to the STS endpoint of a storage profile", "endpoint"
            )
        return route_to(self._route, endpoint)

    def _call(
        self, client: _StsClient, parameters: dict[str, Any], started: float, route: EndpointRoute | None = None
    ) -> dict[str, Any]:
        """Call AssumeRole, with retries. Runs in a thread. No botocore exception is raised: their texts contain
        addresses, ARNs and the store's response.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return client.assume_role(**parameters)
            except botocore.exceptions.ClientError as error:
                code = str(error.response.get("Error", {}).get("Code", ""))
                status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
                failure = by_code(code, status)
                again = status >= 500 and status != 501 and code != "NotImplemented"
                if again and code not in KNOWN_CODES:
                    failure = unreachable()
                if 300 <= status < 400:
                    failure = malformed()
            except (botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError):
                failure, again = unreachable(), True
            except (botocore.exceptions.NoCredentialsError, botocore.exceptions.CredentialRetrievalError):
                failure, again = ShortTermCredentialError(_NO_IDENTITY, "credential"), False
            except botocore.exceptions.BotoCoreError:
                failure, again = (
                    ShortTermCredentialError("The request to the storage could not be sent; check the storage profile"),
                    False,
                )
            except (ResponseParserError, ValueError, TypeError, LookupError, AttributeError):
                # The library's exceptions for a response of an unexpected shape are not documented.
                failure, again = malformed(), False
            if route is not None and route.refusal is not None:
                failure, again = refused_endpoint(route.refusal), False
            pause = 0.1 * 2**attempt
            if not again or attempt == ATTEMPTS or time.monotonic() - started + pause > self._total_seconds:
                raise failure
            time.sleep(pause)

    def _client(self, profile: S3Profile, credential: StsCredential, route: EndpointRoute | None) -> _StsClient:
        endpoint = profile.sts_endpoint or profile.endpoint
        key = (endpoint, profile.region, credential.digest)
        with self._lock:
            if key in self._clients:
                self._clients.move_to_end(key)
                return self._clients[key]
        client = self._new_client(endpoint, profile.region, credential, route)
        with self._lock:
            self._clients[key] = client
            while len(self._clients) > MAX_CLIENTS:
                self._clients.popitem(last=False)
        return client

    def _new_client(
        self, endpoint: str | None, region: str, credential: AnyS3Credential, route: EndpointRoute | None = None
    ) -> _StsClient:
        # A new session for each client: creating clients from one is not thread-safe.
        session = botocore.session.Session()
        session.register_component("data_loader", self._models)
        static = None if isinstance(credential, S3SystemIdentity) else credential
        if static is None:
            session.register_component("credential_provider", self._identity or _NoIdentity())
        # The environment and shared configuration must not redirect the call: only the profile names the endpoint.
        options: dict[str, Any] = {"ignore_configured_endpoint_urls": True}  # missing in botocore's type stubs
        config = Config(
            connect_timeout=self._config["connect_timeout"],
            read_timeout=self._config["read_timeout"],
            retries={"total_max_attempts": 1, "mode": "standard"},
            signature_version="v4",
            max_pool_connections=MAX_THREADS,
            proxies=None if route is None else dict.fromkeys(("http", "https"), route.proxy_url),
            **options,
        )
        client: Any = session.create_client(
            "sts",
            region_name=region,
            endpoint_url=endpoint,
            config=config,
            verify=self._ca_bundle,
            aws_access_key_id=static.access_key_id if static else None,
            aws_secret_access_key=static.secret_access_key if static else None,
            aws_session_token=static.session_token if isinstance(static, S3TemporaryCredential) else None,
        )
        client.meta.events.register("before-parse.sts.AssumeRole", _drop_text_of_proxies)
        return cast(_StsClient, client)


def _drop_text_of_proxies(response_dict: dict[str, Any], **_: object) -> None:
    """Remove the text body of a proxy's 502, 503 or 504 response. Otherwise botocore does not report it as an outage.

    botocore recognizes an outage only without a body or with HTML. Any other body except XML causes a parser error,
    which would be reported as if the endpoint were no STS. `gateway.storage.connector` and other proxies return 502
    with plain text.
    """
    if response_dict["status_code"] in _OUTAGES and not response_dict["body"].lstrip().startswith(b"<"):
        response_dict["body"] = b""
