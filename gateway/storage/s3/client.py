# SPDX-License-Identifier: Apache-2.0
"""The client of S3 stores: files with the object store library, sessions with STS."""

from typing import Final

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.endpoint import DEFAULT_RULES
from gateway.scope.profile import StorageProfile
from gateway.storage.connector import Connector
from gateway.storage.errors import ShortTermCredentialError, StorageCheckFailed
from gateway.storage.object_files import ObjectFiles
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.s3.aws.identity import SystemIdentity
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.calls import SignedCalls
from gateway.storage.s3.confinement import TRAITS, StoreKind
from gateway.storage.s3.credential import (
    S3AccessKey,
    S3AliyunOss,
    S3CloudflareR2,
    S3SystemIdentity,
    S3TemporaryCredential,
    s3_credential,
)
from gateway.storage.s3.oss.sessions import OssSessions
from gateway.storage.s3.profile import S3Profile
from gateway.storage.s3.r2.sessions import R2Sessions
from gateway.storage.s3.sessions import SessionRequests
from gateway.storage.s3.signing.signer import S3Signer
from gateway.storage.s3.stores import S3Stores
from gateway.storage.s3.trials import S3Trials
from gateway.storage.stored import typed

__all__ = ["S3Sessions", "open_client"]


class S3Sessions:
    """`Sessions` by AssumeRole, or by the temporary credentials that are specific to the store."""

    def __init__(self, sts: Sts, *, r2: R2Sessions | None = None, oss: OssSessions | None = None) -> None:
        self._sts = sts
        self._r2 = r2
        self._oss = oss

    async def make(
        self, *, profile: StorageProfile, credential: Credential, policy: str, session_name: str, seconds: int
    ) -> TemporaryCredential:
        """Return a session with the rights of `policy`, for `seconds` (900 to 43,200).

        Raises ShortTermCredentialError if the credential is for another kind of store, which would not apply this
        policy.
        """
        to, own = typed(profile, S3Profile), s3_credential(credential)
        if isinstance(own, S3TemporaryCredential):
            raise TypeError("a temporary credential cannot issue another temporary credential")
        match to.kind, own:
            case StoreKind.R2, S3CloudflareR2() if self._r2 is not None:
                return await self._r2.make(own, policy, seconds=seconds)
            case StoreKind.OSS, S3AliyunOss() if self._oss is not None:
                return await self._oss.make(to, own, policy, session_name=session_name, seconds=seconds)
            case StoreKind.AWS | StoreKind.COMPATIBLE, S3AccessKey() | S3SystemIdentity():
                return await self._sts.assume(
                    profile=to, credential=own, policy=policy, session_name=session_name, seconds=seconds
                )
        raise ShortTermCredentialError(
            f"The gateway could not get a temporary credential: the storage profile is of {TRAITS[to.kind].label}, and "
            f"the storage credential is for another store. Set a credential of type {_CREDENTIAL_TYPES[to.kind]}",
            "profile",
        )

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the holder of the credential can assume the role again without a session
        policy.
        """
        session, of = s3_credential(temporary), typed(profile, S3Profile)
        if not isinstance(session, S3TemporaryCredential):
            raise TypeError("only a temporary credential has a session policy that can be tested")
        if of.kind is StoreKind.R2:
            return  # its credentials are made with an API token, which no credential contains
        if of.kind is StoreKind.OSS:
            again = self._oss is not None and await self._oss.reassumes(of, session)
        else:
            again = await self._sts.reassumes(of, session)
        if again:
            raise StorageCheckFailed(
                "A vended credential can assume the role again without a session policy. Change the role's trust "
                "policy so that only the gateway's own principal can assume the role"
            )


_CREDENTIAL_TYPES: Final = {
    StoreKind.AWS: "access-key or aws-system-identity",
    StoreKind.COMPATIBLE: "access-key",
    StoreKind.R2: "cloudflare-r2",
    StoreKind.OSS: "aliyun-oss",
}


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. Without a `route` it connects only to public addresses, and only to AWS's own STS."""
    identity = SystemIdentity()
    sts = Sts(
        identity=identity,
        identity_rules=options.rules.identity("s3"),
        on_latency=options.on_session,
        ca_bundle=options.ca_bundle,
        route=options.route,
    )
    route = options.route or Connector(DEFAULT_RULES, connect_seconds=options.connect_seconds).route
    requests = SessionRequests(ca_bundle=options.ca_bundle)
    sessions = S3Sessions(
        sts,
        r2=R2Sessions(requests, on_latency=options.on_session),
        oss=OssSessions(requests, on_latency=options.on_session, route=route),
    )
    stores = S3Stores(
        own_role=sts.assume_own_role,
        identity=identity,
        identity_rules=options.rules.identity("s3"),
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        certificates=options.certificates,
        route=route,
    )
    files = ObjectFiles(stores, total_seconds=options.total_seconds)
    signer = S3Signer(own_keys_allowed=options.own_keys_sign_anywhere)
    calls = SignedCalls(
        route=options.route,
        ca_bundle=options.ca_bundle,
        connect_seconds=options.connect_seconds,
        seconds=options.request_seconds,
    )

    def close() -> None:
        sts.close()
        identity.close()

    return StorageClient(files=files, sessions=sessions, close=close, signer=signer, trials=S3Trials(calls))
