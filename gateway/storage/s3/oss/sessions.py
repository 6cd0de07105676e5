# SPDX-License-Identifier: Apache-2.0
"""Make sessions by AssumeRole at Alibaba Cloud STS, with a policy that limits a vended credential.

The request is that of https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerole. The
signature is HMAC-SHA1 over the sorted parameters ("Request syntax and signature method V1 of RPC APIs"). The SDK of the
vendor would add ten packages for that.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from gateway.scope.endpoint import RouteTo
from gateway.scope.errors import PolicyTooLarge
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.s3.credential import S3AliyunOss, S3TemporaryCredential
from gateway.storage.s3.profile import S3Profile
from gateway.storage.s3.sessions import LatencyCallback, Measured, SessionRequests, malformed, route_to, temporary

__all__ = ["OssSessions", "rpc_signature"]

_NOT_IN_SESSION_NAME: Final = re.compile(r"[^A-Za-z0-9.@_-]")

_REASONS: Final = {
    "NoPermission": (
        "refused",
        "Alibaba Cloud denied AssumeRole; check the role's trust policy and the credential of the warehouse",
    ),
    "EntityNotExist.Role": ("refused", "the role of the storage profile does not exist"),
    "InvalidAccessKeyId.NotFound": (
        "credential",
        "Alibaba Cloud does not know the access key of the warehouse's credential; set a valid one",
    ),
    "InvalidAccessKeyId.Inactive": ("credential", "the access key of the warehouse's credential is disabled"),
    "SignatureDoesNotMatch": (
        "credential",
        "the secret key of the warehouse's credential is wrong; set the correct one",
    ),
    "IncompleteSignature": ("credential", "the secret key of the warehouse's credential is wrong; set the correct one"),
    "InvalidSecurityToken.Expired": ("credential", "the credential with which the gateway called STS has expired"),
    "MalformedPolicyDocument": ("policy", "Alibaba Cloud rejected the policy of the session as malformed"),
    "InvalidParameter.PolicyGrammar": ("policy", "Alibaba Cloud rejected the policy of the session as malformed"),
}


class OssSessions:
    """Creates sessions of a role. `route` returns the routes to the STS endpoints of profiles."""

    def __init__(self, requests: SessionRequests, *, on_latency: LatencyCallback, route: RouteTo | None) -> None:
        self._requests = requests
        self._on_latency = on_latency
        self._route = route

    async def make(
        self, profile: S3Profile, credential: S3AliyunOss, policy: str, *, session_name: str, seconds: int
    ) -> S3TemporaryCredential:
        """Return a session of the profile's role with the rights of `policy`, for `seconds`.

        Raises ShortTermCredentialError, and PolicyTooLarge if the policy exceeds the limit of the store.
        """
        if not policy.strip():
            raise ValueError("a policy is required: without one the session has all rights of the role")
        parameters = {
            "RoleArn": profile.session_role_arn or "",
            "RoleSessionName": _NOT_IN_SESSION_NAME.sub("-", session_name),
            "DurationSeconds": str(seconds),
            "Policy": policy,
        }
        if credential.external_id is not None:
            parameters["ExternalId"] = credential.external_id
        with Measured(self._on_latency):
            return await self._assume(profile, credential, parameters, seconds)

    async def reassumes(self, profile: S3Profile, session: S3TemporaryCredential) -> bool:
        """Return True if the holder of a vended credential can assume the role again without a policy, and so leave its
        prefix.
        """
        parameters = {
            "RoleArn": profile.session_role_arn or "",
            "RoleSessionName": "lakegate-check",
            "SecurityToken": session.session_token,
        }
        try:
            await self._assume(profile, session, parameters, 3600)
        except ShortTermCredentialError as error:
            if error.reason in {"refused", "credential"}:
                return False
            raise
        return True

    async def _assume(
        self, profile: S3Profile, keys: S3AliyunOss | S3TemporaryCredential, given: Mapping[str, str], seconds: int
    ) -> S3TemporaryCredential:
        endpoint = profile.sts_endpoint or f"https://sts.{profile.region.removeprefix('oss-')}.aliyuncs.com"

        def body() -> bytes:
            parameters = {
                **given,
                "Action": "AssumeRole",
                "Version": "2015-04-01",
                "Format": "JSON",
                "AccessKeyId": keys.access_key_id,
                "SignatureMethod": "HMAC-SHA1",
                "SignatureVersion": "1.0",
                # OSS refuses a nonce that was used before, so each attempt has its own.
                "SignatureNonce": secrets.token_hex(16),
                "Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            parameters["Signature"] = rpc_signature("POST", parameters, keys.secret_access_key)
            return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in parameters.items()).encode()

        answer = await self._requests.post(
            endpoint + "/",
            headers={"content-type": "application/x-www-form-urlencoded"},
            body=body,
            route=None if self._route is None else route_to(self._route, endpoint),
        )
        try:
            fields: dict[str, Any] = json.loads(answer.body)
            code = str(fields.get("Code", ""))
        except (ValueError, AttributeError):
            raise malformed() from None
        if answer.status >= 400:
            raise _refusal(code, answer.status)
        return temporary(_in_form_of_sts(fields), seconds)


def rpc_signature(method: str, parameters: Mapping[str, str], secret: str) -> str:
    """Return the signature of a request by signature version 1.0, in base64."""
    canonical = "&".join(f"{_encoded(name)}={_encoded(parameters[name])}" for name in sorted(parameters))
    text = f"{method}&{_encoded('/')}&{_encoded(canonical)}"
    # The protocol prescribes SHA-1. As part of an HMAC it has no known weakness.
    return base64.b64encode(hmac.new(f"{secret}&".encode(), text.encode(), hashlib.sha1).digest()).decode()


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _in_form_of_sts(fields: dict[str, Any]) -> dict[str, Any]:
    try:
        found = fields["Credentials"]
        expiry = datetime.strptime(found["Expiration"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return {
            "Credentials": {
                "AccessKeyId": found["AccessKeyId"],
                "SecretAccessKey": found["AccessKeySecret"],
                "SessionToken": found["SecurityToken"],
                "Expiration": expiry,
            }
        }
    except (ValueError, TypeError, LookupError):
        raise malformed() from None


def _refusal(code: str, status: int) -> ShortTermCredentialError | PolicyTooLarge:
    if code == "InvalidParameter.PolicySize":
        return PolicyTooLarge("The policy of the session exceeds the size that the store allows. Use a shorter path")
    unknown = ("failed", "Alibaba Cloud did not issue a credential")
    if status in {401, 403}:
        unknown = ("refused", "Alibaba Cloud denied AssumeRole with the credential of the warehouse")
    reason, text = _REASONS.get(code, unknown)
    return ShortTermCredentialError(f"The gateway could not get a temporary credential: {text}", reason)
