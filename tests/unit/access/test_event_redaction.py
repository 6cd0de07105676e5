# SPDX-License-Identifier: Apache-2.0
"""No value of a property with the name of a secret is in an event (invariant 9)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.events.event_redaction import REDACTED, is_secret_name, without_secrets
from gateway.access.operation import ChangeOperation
from tests.support.door.change_events import CHANGES, NEW, events_of_example

WORDS = (
    "secret", "password", "passwd", "passphrase", "token", "credential", "access-key", "access.key.id", "account_key",
    "apiKey", "connection-string",
)  # fmt: skip
PLANTED = "hunter22-planted"


def _names() -> st.SearchStrategy[str]:
    word = st.sampled_from(WORDS).flatmap(lambda each: st.sampled_from([each, each.upper(), each.title()]))
    around = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    inside = st.tuples(around, word, around).map("".join)
    return inside | st.sampled_from(["s3.", "my-", "fs.azure_"]).map(lambda before: f"{before}key")


def _planted(value: Any, extra: Mapping[str, str]) -> Any:
    """Return a copy of an operation or a part of it with `extra` in each map of texts."""
    match value:
        case Mapping() if all(isinstance(each, str) for each in value.values()):
            return {**value, **extra}
        case Mapping():
            return {name: _planted(each, extra) for name, each in value.items()}
        case list() | tuple() if not hasattr(value, "_fields"):
            return type(value)(_planted(each, extra) for each in value)
        case msgspec.Raw():
            return msgspec.Raw(msgspec.json.encode(_planted(msgspec.json.decode(value), extra)))
        case msgspec.Struct():
            fields = {name: _planted(getattr(value, name), extra) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        init = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{name: _planted(getattr(value, name), extra) for name in init})
    return value


def _data(operation: ChangeOperation) -> bytes:
    return b"\n".join(event.data for event in asyncio.run(events_of_example(operation, **NEW)))


def _carriers() -> list[ChangeOperation]:
    """Return the examples whose events contain their properties, found by a name that is not redacted."""
    return [each for each in CHANGES if PLANTED.encode() in _data(_planted(each, {"comment": PLANTED}))]


@pytest.fixture(scope="module")
def carriers() -> list[ChangeOperation]:
    return _carriers()


def test_operations_with_properties_are_known(carriers: list[ChangeOperation]) -> None:
    """The test below would prove nothing for an operation whose properties it does not find."""
    names = {type(each).__name__ for each in carriers}
    assert names >= {"CreateTable", "CommitTable", "CommitTransaction", "CreateView", "CommitView"}, names


@pytest.mark.threat("LG-DIS-20")
@settings(max_examples=100, deadline=None)
@given(data=st.data(), name=_names())
def test_no_event_contains_the_value_of_a_secret_property(
    carriers: list[ChangeOperation], data: st.DataObject, name: str
) -> None:
    operation = data.draw(st.sampled_from(carriers))
    sent = _data(_planted(operation, {name: PLANTED, "comment": "kept"}))
    assert PLANTED.encode() not in sent
    assert REDACTED.encode() in sent and b'"kept"' in sent


@given(name=_names(), depth=st.integers(0, 3))
def test_value_is_replaced_at_every_depth_and_in_every_spelling_of_json(name: str, depth: int) -> None:
    value: object = {name: [PLANTED, {"a": PLANTED}], "other": "kept"}
    for _ in range(depth):
        value = {"updates": [value]}
    escaped = "".join(f"\\u{ord(each):04x}" if each.isascii() else each for each in name)
    plain = msgspec.json.encode(value)
    for encoded in (plain, plain.replace(msgspec.json.encode(name), f'"{escaped}"'.encode())):
        assert PLANTED.encode() not in without_secrets(encoded)
        assert b'"kept"' in without_secrets(encoded)


@pytest.mark.parametrize("name", ["pass", "smtp.pass", "DB_PASS", "pass.db"])
def test_short_name_of_a_password_is_one_of_a_secret(name: str) -> None:
    assert PLANTED.encode() not in without_secrets(msgspec.json.encode({name: PLANTED}))


@pytest.mark.parametrize(
    "name",
    [
        "write.object-storage.enabled", "write.format.default", "owner", "partition", "primary-key", "sort.key",
        "write.distribution.partition-key", "schema.name-mapping.default", "comment", "keyspace", "key-columns",
        "compass", "bypass.cache", "passenger",
    ],
)  # fmt: skip
def test_usual_property_is_kept(name: str) -> None:
    assert not is_secret_name(name)
    data = msgspec.json.encode({name: "value"})
    assert without_secrets(data) == data


@pytest.mark.threat("LG-DIS-20")
@pytest.mark.parametrize(
    "url",
    [
        f"jdbc:postgresql://etl:{PLANTED}@db/sales", f"https://:{PLANTED}@host/path", f"redis://{{}}:{PLANTED}@host",
        f"jdbc:sqlserver://db:1433;user=etl;password={PLANTED};encrypt=true", f"https://host/?a=1&api_key={PLANTED}",
        f"https://acct.blob.core.windows.net/c?sv=1&sig={PLANTED}", f"x https://host/?sig={PLANTED * 1000}",
        f"?sv=1&sig={PLANTED}&se=2", f"DefaultEndpointsProtocol=https;AccountKey={PLANTED};x=1", f"password={PLANTED}",
    ],
)  # fmt: skip
def test_secret_in_a_url_is_replaced_whatever_the_name_of_its_property(url: str) -> None:
    for data in (msgspec.json.encode({"uri": url}), msgspec.json.encode({"updates": [{"comment": url}]})):
        for encoded in (data, data.replace(b"/", b"\\/"), data.replace(b"@", b"\\u0040").replace(b"=", b"\\u003d")):
            sent = without_secrets(encoded)
            assert PLANTED.encode() not in sent
            assert REDACTED.encode() in sent


@pytest.mark.parametrize(
    "url",
    [
        "abfss://container@account.dfs.core.windows.net/x", "s3://bucket/a;b=c/d@e", "mailto:a:b@c", "a@b;sort=1",
        "https://host:8443/p?signal=2&page=1", "https://host/sig=1", "select 'a:b@c' where sig=1",
    ],
)  # fmt: skip
def test_usual_url_is_kept(url: str) -> None:
    data = msgspec.json.encode({"location": url})
    assert without_secrets(data) == data
