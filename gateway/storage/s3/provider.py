# SPDX-License-Identifier: Apache-2.0
"""S3 and compatible stores as a provider of storage."""

from typing import Final

from gateway.storage.provider import ClientOptions, Provider, StorageClient
from gateway.storage.s3.credential import decode_s3_credential
from gateway.storage.s3.location import SCHEME
from gateway.storage.s3.profile import S3Profile, decode_s3_profile

__all__ = ["S3"]


def _open(options: ClientOptions) -> StorageClient:
    # Clients of stores take memory and time to import, and reading a profile needs none.
    from gateway.storage.s3.client import open_client

    return open_client(options)


S3: Final = Provider(
    tag=S3Profile.provider,
    scheme=SCHEME,
    profile=S3Profile,
    decode_profile=decode_s3_profile,
    decode_credential=decode_s3_credential,
    open=_open,
)
