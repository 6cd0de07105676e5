# SPDX-License-Identifier: Apache-2.0
"""The examples of the OpenAPI documents are real, complete, of the present types, and free of secrets."""

from __future__ import annotations

import json
import re

import msgspec

from gateway.api.openapi_texts import EXAMPLES as FILE
from gateway.api.openapi_texts import Recorded, recorded_examples
from tests.api_examples.bodies import ENDPOINTS, fault
from tests.api_examples.masking import ID, masked
from tests.support.goldens import golden_openapi

EXAMPLES = recorded_examples()

#: Operations with a generated example, and why no test can record one.
GENERATED = {
    "Bootstrap": "every stack of the tests was bootstrapped by its setup",
    "RetryEventDeadLetters": "no stack of the tests has a sink that refuses events",
    "ScheduleTask": "the server refuses each of these requests",
}

RECORD = "run `make api-examples FILES=<the test file that sends the request>`"


def test_every_request_body_has_a_recorded_example() -> None:
    missing = {
        name
        for name, (request, _) in ENDPOINTS.items()
        if request is not None and EXAMPLES.get(name, Recorded()).request is msgspec.UNSET
    }
    assert missing == set(GENERATED), RECORD


def test_most_answers_have_a_recorded_example() -> None:
    answered = [name for name, (_, answer) in ENDPOINTS.items() if answer not in (None, str)]
    recorded = [name for name in answered if EXAMPLES.get(name, Recorded()).response is not msgspec.UNSET]
    assert len(recorded) > 0.95 * len(answered), set(answered) - set(recorded)


def test_every_example_has_the_form_that_the_server_reads_and_returns() -> None:
    assert set(EXAMPLES) <= set(ENDPOINTS), "examples of operations that do not exist: remove their lines"
    for name, example in EXAMPLES.items():
        assert not (found := fault(name, example)), f"The example of {name} is out of date: {found}. First {RECORD}"


def test_examples_contain_no_id_address_time_or_secret_of_their_run() -> None:
    text = FILE.read_text()
    kept = json.loads(text)
    assert golden_openapi.as_lines(kept) == text
    for name, example in kept.items():
        assert masked(example, _Same()) == example, name
    assert all(each.startswith(ID) for each in re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", text))


class _Same(dict[str, str]):
    """Leaves masked ids as they are: their numbers follow the order of the recorded members."""

    def setdefault(self, key: str, default: str = "", /) -> str:
        return key


def test_masking_keeps_equal_ids_equal_and_removes_secrets() -> None:
    one, other = "11111111-2222-4333-8444-555555555555", "66666666-7777-4888-9999-aaaaaaaaaaaa"
    recorded = {
        "warehouse-id": one,
        "location": f"s3://lake/{one}/{other}",
        "storage-credential": {"secret-access-key": "very secret", "access-key-id": "AKIA"},
        "endpoint": "http://127.0.0.1:39123/bucket",
        "created-at": "2026-11-29T12:01:02.123456Z",
        "next-page-token": "abc",
        "name": "orders_4711_12",
        "created": 1_764_000_000_123,
        "lists": [[1, 2, 3, 4]],
    }
    assert masked(recorded) == {
        "warehouse-id": f"{ID}-000000000001",
        "location": f"s3://lake/{ID}-000000000001/{ID}-000000000002",
        "storage-credential": {"secret-access-key": "…", "access-key-id": "…"},
        "endpoint": "https://lakegate.example.com/bucket",
        "created-at": "2026-11-02T09:30:00Z",
        "next-page-token": "…",
        "name": "orders",
        "created": 1_793_612_200_000,
        "lists": [[1, 2]],
    }
