# SPDX-License-Identifier: Apache-2.0
"""The client of S3 stores: files with the object store library, sessions with STS."""

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.endpoint import DEFAULT_RULES
from gateway.scope.profile import StorageProfile
from gateway.storage.connector import Connector
from gateway.storage.errors import StorageCheckFailed
from gateway.storage.object_files import ObjectFiles
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.s3.credential import S3Credential, S3TemporaryCredential, s3_credential
from gateway.storage.s3.profile import s3_profile
from gateway.storage.s3.signed_calls import SignedCalls
from gateway.storage.s3.stores import S3Stores
from gateway.storage.s3.sts import Sts
from gateway.storage.s3.trials import S3Trials

__all__ = ["S3Sessions", "open_client"]


class S3Sessions:
    """`Sessions` by AssumeRole."""

    def __init__(self, sts: Sts) -> None:
        self._sts = sts

    async def make(
        self, *, profile: StorageProfile, credential: Credential, policy: str, session_name: str, seconds: int
    ) -> TemporaryCredential:
        """Return a session of the profile's STS role with the rights of `policy`, for `seconds` (900 to 43,200)."""
        own = s3_credential(credential)
        if not isinstance(own, S3Credential):
            raise TypeError("a temporary credential makes no sessions")
        return await self._sts.assume(
            profile=s3_profile(profile), credential=own, policy=policy, session_name=session_name, seconds=seconds
        )

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the credential can assume the role again without a session policy."""
        session = s3_credential(temporary)
        if not isinstance(session, S3TemporaryCredential):
            raise TypeError("only a temporary credential has a policy to get rid of")
        if await self._sts.reassumes(s3_profile(profile), session):
            raise StorageCheckFailed(
                "A vended credential can assume the role again without a session policy. Change the role's trust "
                "policy so that only the gateway's own principal can assume the role"
            )


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. Without a `route` it connects only to public addresses, and only to AWS's own STS."""
    sts = Sts(
        system_identities=options.rules.system_identities,
        on_latency=options.on_session,
        ca_bundle=options.ca_bundle,
        route=options.route,
    )
    stores = S3Stores(
        own_role=sts.assume_own_role,
        system_identities=options.rules.system_identities,
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        certificates=options.certificates,
        route=options.route or Connector(DEFAULT_RULES, connect_seconds=options.connect_seconds).route,
    )
    files = ObjectFiles(stores, total_seconds=options.total_seconds)
    calls = SignedCalls(
        route=options.route,
        ca_bundle=options.ca_bundle,
        connect_seconds=options.connect_seconds,
        seconds=options.request_seconds,
    )
    return StorageClient(files=files, sessions=S3Sessions(sts), close=sts.close, trials=S3Trials(calls))
