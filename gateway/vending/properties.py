# SPDX-License-Identifier: Apache-2.0
"""The properties clients read their storage access from (Iceberg REST, `config` and `storage-credentials[].config`).

One dictionary serves Java, PyIceberg and DuckDB, which look for the same things under different names.
"""

from gateway.scope.credential import TemporaryCredential
from gateway.scope.profile import S3Profile

__all__ = ["client_properties"]


def client_properties(
    profile: S3Profile, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
) -> dict[str, str]:
    """Region, endpoint, path style always; keys, expiry (milliseconds since 1970) and refresh only with `temporary`."""
    properties = {
        "s3.region": profile.region,  # PyIceberg
        "client.region": profile.region,  # Java
        "region": profile.region,  # DuckDB
    }
    if profile.endpoint is not None:
        properties["s3.endpoint"] = profile.endpoint
    # Without this a client resolves the bucket as a host name, which no store on an IP address or plain name answers
    # to.
    if profile.path_style_access:
        properties["s3.path-style-access"] = "true"
        properties["s3.force-virtual-addressing"] = "false"  # PyIceberg's name for the opposite
    if profile.aws_kms_key_arn is not None:
        properties["s3.sse.type"] = "kms"
        properties["s3.sse.key"] = profile.aws_kms_key_arn
    if temporary is None:
        return properties
    expires_ms = str(int(temporary.expires_at.timestamp() * 1000))
    properties |= {
        "s3.access-key-id": temporary.access_key_id,
        "s3.secret-access-key": temporary.secret_access_key,
        "s3.session-token": temporary.session_token,
        "s3.session-token-expires-at-ms": expires_ms,
        "expiration-time": expires_ms,
    }
    if refresh_endpoint is not None:
        properties["client.refresh-credentials-endpoint"] = refresh_endpoint
        properties["client.refresh-credentials-enabled"] = "true"
    return properties
