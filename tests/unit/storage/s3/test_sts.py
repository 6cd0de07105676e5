# SPDX-License-Identifier: Apache-2.0
"""AssumeRole with a scripted STS: requests, retries, checked responses and errors."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.exceptions
import msgspec
import pytest
from botocore.loaders import JSONFileLoader

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import PolicyTooLarge
from gateway.scope.location import Location
from gateway.scope.profile import IdentityRules
from gateway.storage.errors import ShortTermCredentialError, StorageSessionUnavailable
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.aws.sts import MAX_CLIENTS, Sts
from gateway.storage.s3.credential import S3AccessKey, S3SystemIdentity, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.vending.cache import VendKey
from gateway.vending.vendor import SessionIdentity, Vended, Vendor
from tests.support.servers.storage_routes import LOCAL, clients

ROLE = "arn:aws:iam::123456789012:role/vend"
PROFILE = S3Profile(bucket="warehouse", region="eu-west-1", key_prefix="base", sts_enabled=True, sts_role_arn=ROLE)
KEYS = S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t", external_id="ext-1")
TABLE = Location(SCHEME, "warehouse", ("base", "t"))


def answer(seconds: float = 900, **changes: Any) -> dict[str, Any]:
    expires = datetime.now(UTC) + timedelta(seconds=seconds)
    return {
        "Credentials": {"AccessKeyId": "ASIA", "SecretAccessKey": "sec", "SessionToken": "tok", "Expiration": expires}
        | changes
    }


def refusal(code: str, status: int) -> botocore.exceptions.ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": f"{ROLE} s3cr3t http://10.0.0.1"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return botocore.exceptions.ClientError(response, "AssumeRole")


class Scripted(Sts):
    """An STS that returns a list of responses and raises exceptions in it. The last one repeats."""

    def __init__(self, *answers: Any, **more: Any) -> None:
        super().__init__(**({"route": LOCAL} | more))
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def _new_client(self, *_: Any) -> Any:
        return self

    def assume_role(self, **parameters: Any) -> dict[str, Any]:
        self.calls.append(parameters)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, dict)
        return found


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("gateway.storage.s3.aws.sts.time.sleep", lambda seconds: None)
    yield


async def assume(sts: Sts, profile: S3Profile = PROFILE, keys: Any = KEYS, policy: str = "{}") -> S3TemporaryCredential:
    return await sts.assume(profile=profile, credential=keys, policy=policy, session_name="ann", seconds=900)


async def test_the_sts_request_has_role_policy_name_duration_external_id_and_tags() -> None:
    sts = Scripted(answer())
    tagged = S3Profile(
        bucket="warehouse", region="r", sts_enabled=True, sts_role_arn=ROLE, sts_session_tags={"team": "x"}
    )
    await assume(sts, tagged, policy="{P}")
    assert sts.calls == [
        {
            "RoleArn": ROLE, "RoleSessionName": "ann", "DurationSeconds": 900, "Policy": "{P}", "ExternalId": "ext-1",
            "Tags": [{"Key": "team", "Value": "x"}],
        }
    ]  # fmt: skip


async def test_a_store_without_roles_gets_a_placeholder_role() -> None:
    sts = Scripted(answer())
    await assume(
        sts, S3Profile(bucket="warehouse", region="r", flavor=Flavor.S3_COMPAT, endpoint="http://s", sts_enabled=True)
    )
    assert len(sts.calls[0]["RoleArn"]) >= 20


@pytest.mark.threat("LG-POL-06")
@pytest.mark.parametrize("policy", ["", " ", "\n"])
async def test_a_session_without_a_policy_is_never_requested(policy: str) -> None:
    sts = Scripted(answer())
    with pytest.raises(ValueError, match="policy"):
        await assume(sts, policy=policy)
    assert sts.calls == []


@pytest.mark.parametrize(
    "transient_error",
    [
        refusal("InternalFailure", 500),
        refusal("ServiceUnavailable", 503),
        botocore.exceptions.EndpointConnectionError(endpoint_url="http://10.0.0.1"),
        botocore.exceptions.ReadTimeoutError(endpoint_url="http://10.0.0.1"),
        botocore.exceptions.ConnectionClosedError(endpoint_url="http://10.0.0.1"),
    ],
)
async def test_transient_sts_errors_are_tried_three_times_at_most(transient_error: Exception) -> None:
    recovering = Scripted(transient_error, transient_error, answer())
    assert (await assume(recovering)).access_key_id == "ASIA"
    assert len(recovering.calls) == 3
    lasting = Scripted(transient_error)
    with pytest.raises(StorageSessionUnavailable):
        await assume(lasting)
    assert len(lasting.calls) == 3


@pytest.mark.threat("LG-POL-08")
@pytest.mark.parametrize(
    ("lasting", "reason"),
    [
        (refusal("AccessDenied", 403), "refused"),
        (refusal("InvalidClientTokenId", 403), "credential"),
        (refusal("SomethingNew", 403), "refused"),
        (refusal("MalformedPolicyDocument", 400), "policy"),
        (refusal("NotImplemented", 501), "unsupported"),
        (refusal("NotImplemented", 500), "unsupported"),
        (refusal("SomethingNew", 400), "failed"),
        (refusal("SomethingNew", 501), "failed"),
        (botocore.exceptions.NoCredentialsError(), "credential"),
        (botocore.exceptions.ParamValidationError(report="x"), "failed"),
    ],
)
async def test_permanent_sts_errors_are_not_retried_or_sent_without_policy(lasting: Exception, reason: str) -> None:
    sts = Scripted(lasting)
    with pytest.raises(ShortTermCredentialError) as failed:
        await assume(sts)
    assert failed.value.reason == reason and failed.value.code == 412
    assert len(sts.calls) == 1 and sts.calls[0]["Policy"]


@pytest.mark.threat("LG-POL-07")
async def test_a_packed_policy_limit_error_is_reported_for_the_location() -> None:
    with pytest.raises(PolicyTooLarge):
        await assume(Scripted(refusal("PackedPolicyTooLarge", 400)))


@pytest.mark.threat("LG-DIS-04")
async def test_errors_and_tracebacks_contain_no_part_of_the_store_response() -> None:
    import traceback

    for cause in (
        refusal("AccessDenied", 403),
        botocore.exceptions.EndpointConnectionError(endpoint_url="http://10.0.0.1"),
    ):
        with pytest.raises(ShortTermCredentialError) as failed:
            await assume(Scripted(cause))
        text = "".join(traceback.format_exception(failed.value)) + repr(failed.value.__dict__)
        for secret in ("s3cr3t", "10.0.0.1", "arn:aws", "ASIA"):
            assert secret not in text


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"Credentials": {}},
        answer(SessionToken=""),
        answer(SessionToken=None),
        answer(Expiration=None),
        answer(AccessKeyId=5),
    ],
)
async def test_an_sts_response_without_token_or_expiry_is_not_a_session(broken: dict[str, Any]) -> None:
    with pytest.raises(ShortTermCredentialError) as failed:
        await assume(Scripted(broken))
    assert failed.value.reason == "incomplete"


async def test_a_session_beyond_the_requested_duration_is_refused() -> None:
    with pytest.raises(ShortTermCredentialError) as failed:
        await assume(Scripted(answer(seconds=3600)))
    assert failed.value.reason == "too-long"


async def test_a_hanging_store_times_out_and_is_counted_in_metrics() -> None:
    class Hanging(Scripted):
        def assume_role(self, **_: Any) -> dict[str, Any]:
            waiting.wait(60)
            return answer()

    waiting, outcomes = threading.Event(), []
    sts = Hanging(answer(), total_seconds=0.1, on_latency=lambda seconds, outcome: outcomes.append(outcome))
    started = time.monotonic()
    with pytest.raises(ShortTermCredentialError):
        await assume(sts)
    assert time.monotonic() - started < 30 and outcomes == ["unreachable"]
    waiting.set()


async def test_the_cloud_identity_of_the_gateway_is_used_only_if_enabled() -> None:
    off = Scripted(answer())
    with pytest.raises(ShortTermCredentialError):
        await assume(off, keys=S3SystemIdentity())
    assert off.calls == []
    on = Scripted(answer(), identity_rules=IdentityRules(enabled=True))
    await assume(on, keys=S3SystemIdentity(external_id="ext-1"))
    assert on.calls[0]["ExternalId"] == "ext-1"


async def test_clients_are_reused_per_credential_and_bounded() -> None:
    made: list[Any] = []

    class Counting(Scripted):
        def _new_client(self, *arguments: Any) -> Any:
            made.append(arguments)
            return self

    sts = Counting(answer())
    await asyncio.gather(*(assume(sts) for _ in range(3)))
    made.clear()
    await assume(sts)
    assert made == []
    await assume(sts, keys=S3AccessKey(access_key_id="AK", secret_access_key="another"))
    assert len(made) == 1
    for number in range(MAX_CLIENTS + 5):
        await assume(sts, keys=S3AccessKey(access_key_id=f"AK{number}", secret_access_key="x"))
    assert len(sts._clients) == MAX_CLIENTS


async def test_no_client_is_made_and_no_call_sent_on_the_event_loop() -> None:
    """Both block: the one reads files, the other waits for the store."""
    threads: list[threading.Thread] = []

    class Noted(Scripted):
        def _new_client(self, *_: Any) -> Any:
            threads.append(threading.current_thread())
            return self

        def assume_role(self, **parameters: Any) -> dict[str, Any]:
            threads.append(threading.current_thread())
            return super().assume_role(**parameters)

    sts = Noted(answer())
    session = await assume(sts)
    await sts.assume_own_role(msgspec.structs.replace(PROFILE, assume_role_arn=ROLE), KEYS)
    assert await sts.reassumes(PROFILE, session)
    assert len(threads) == 5, "the second call reuses the client of the first"
    assert threading.current_thread() not in threads


async def test_all_clients_share_the_botocore_service_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate copy for each client would take eight megabytes of a worker's memory for each credential."""
    read: list[str] = []
    load = JSONFileLoader.load_file

    def noted(self: JSONFileLoader, path: str) -> Any:
        read.append(path)
        return load(self, path)

    monkeypatch.setattr(JSONFileLoader, "load_file", noted)
    sts = Sts()
    sts._new_client(None, "eu-west-1", KEYS)
    first = len(read)
    sts._new_client("https://store.example", "eu-west-2", KEYS)
    assert any(path.endswith("/endpoints") for path in read)
    assert len(read) == first


async def test_botocore_is_not_redirected_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "stranger")
    client: Any = Sts()._new_client(None, "eu-west-1", KEYS)
    assert client.meta.endpoint_url == "https://sts.eu-west-1.amazonaws.com"
    assert client._request_signer._credentials.token is None


# -- the vendor ------------------------------------------------------------------------------------------------------


async def vend(sts: Sts, level: AccessLevel = AccessLevel.READ, **more: Any) -> Any:
    arguments: dict[str, Any] = {
        "profile": PROFILE, "profile_version": "7", "credential": KEYS, "location": TABLE, "level": level,
        "seconds": 900,
        "session": SessionIdentity(principal="oidc~ann", role="r", context="groups"),
    }  # fmt: skip
    return await Vendor(clients(sts), **{k: more.pop(k) for k in ("cache",) if k in more}).vend(**(arguments | more))


async def test_a_vend_result_is_complete_and_its_policy_covers_the_location() -> None:
    sts = Scripted(answer())
    vended = await vend(sts)
    assert isinstance(vended, Vended)
    assert (vended.prefix, vended.level, vended.role) == ("s3://warehouse/base/t/", AccessLevel.READ, ROLE)
    assert vended.expires_at == vended.temporary.expires_at and vended.session_name == sts.calls[0]["RoleSessionName"]
    assert sts.calls[0]["Policy"] == build_session_policy(TABLE, AccessLevel.READ, escapes_known=True)
    assert "sec" not in repr(vended) and "tok" not in repr(vended)


async def test_requests_never_share_a_credential_without_a_cache() -> None:
    sts = Scripted(answer())
    await vend(sts)
    await vend(sts)
    assert len(sts.calls) == 2


async def test_every_input_of_vending_changes_the_cache_key() -> None:
    keys: list[VendKey] = []

    async def spy(
        key: VendKey, make: Callable[[], Awaitable[S3TemporaryCredential]], still_allowed: Any = None
    ) -> S3TemporaryCredential:
        keys.append(key)
        return await make()

    identity = {"principal": "oidc~ann", "role": "r", "context": "groups"}
    changes: tuple[dict[str, Any], ...] = (
        {},
        *({"session": SessionIdentity(**(identity | {name: "other"}))} for name in identity),
        {"level": AccessLevel.READ_WRITE},
        {"location": Location(SCHEME, "warehouse", ("base", "t2"))},
        {"profile_version": "8"},
        {"seconds": 901},
        {"credential": S3AccessKey(access_key_id="AK", secret_access_key="rotated")},
    )
    for more in changes:
        await vend(Scripted(answer()), cache=spy, **more)
    assert len(set(keys)) == len(keys) == 9
    assert "s3cr3t" not in repr(keys)
