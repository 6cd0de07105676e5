# SPDX-License-Identifier: Apache-2.0
"""No message shows a regular expression, and each rejected value of an enumeration comes with the possible values."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from gateway.iceberg.codec import decode
from gateway.iceberg.errors import BadRequestException
from lakegate.value_messages import FORMS, in_words

_ROOT = Path(__file__).parents[3]
_SOURCES = sorted(path for room in ("gateway", "lakegate") for path in (_ROOT / room).rglob("*.py"))
_ERRORS = {"ValidationError", "MsgspecError", "DecodeError"}

#: Handlers that use an error of the decoder without `in_words`, with the reason.
_OTHERWISE = {
    "lakegate/local/ready.py": "a file that the embedded stack wrote",
    "gateway/events/cloud_events.py": "a stored event",
    "gateway/identity/discovery.py": "a document of an identity provider",
    "gateway/identity/keys.py": "a document of an identity provider",
    "gateway/identity/kubernetes.py": "an answer of Kubernetes",
    "gateway/cli/repairs.py": "the error of a check that builds its own message",
    "gateway/fga/wire.py": "an answer of OpenFGA, which the operator cannot correct",
    "gateway/opa/replay_records.py": "an answer of OPA, or a line of a file whose number the message names",
    "gateway/opa/replay_run.py": "the decoder's error for text that is no JSON",
    "gateway/opa/decider.py": "an answer of OPA, whose schema is checked in Rego",
    "gateway/iceberg/codec.py": "the decoder's error for text that is no JSON",
    "lakegate/spark/catalog_client.py": "an answer of the gateway itself",
    "gateway/storage/stored.py": "a message without values, which may be secrets",
}


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Circle(msgspec.Struct, tag="circle", tag_field="shape", frozen=True):
    radius: int


class Square(msgspec.Struct, tag="square", tag_field="shape", frozen=True):
    side: int


class Drawing(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    name: Annotated[str, Meta(pattern=r"^[a-z0-9-]+(?![\s\S])$")] = "a"
    main_colour: Colour = Colour.RED
    sizes: tuple[Literal[1, 2], ...] = ()
    by_colour: dict[Colour, int] = {}
    named: dict[str, Colour | None] = {}
    shapes: list[Circle | Square] = []
    edge: tuple[int, Colour] | None = None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "A"}, "expected lower-case letters, digits and `-` only at `$.name`"),
        ({"main-colour": "x"}, "invalid value 'x', which must be one of: red, blue at `$.main-colour`"),
        ({"sizes": [1, 3]}, "invalid value 3, which must be one of: 1, 2 at `$.sizes[1]`"),
        ({"by-colour": {"x": 1}}, "invalid value 'x', which must be one of: red, blue"),
        ({"named": {"any": "x"}}, "invalid value 'x', which must be one of: red, blue at `$.named[...]`"),
        (
            {"shapes": [{"shape": "x"}]},
            "must be one of: circle, square at `$.shapes[0].shape`",
        ),
        ({"edge": [1, "x"]}, "invalid value 'x', which must be one of: red, blue at `$.edge[1]`"),
        ({"sizes": 1}, "expected `array`, got `int` at `$.sizes`"),
    ],
)
def test_a_rejected_value_is_described_in_words(body: object, message: str) -> None:
    with pytest.raises(BadRequestException) as refused:
        decode(msgspec.json.encode(body), Drawing)
    assert message in refused.value.message


def test_a_value_that_is_decoded_by_itself_is_found_by_both_of_its_paths() -> None:
    class Outer(msgspec.Struct, frozen=True):
        drawing: Drawing

    error = msgspec.ValidationError("Invalid enum value 'x' - at `$.main-colour` - at `$.drawing`")
    assert "must be one of: red, blue - at" in in_words(error, Outer)


def test_a_pattern_without_words_is_not_shown() -> None:
    kind = Annotated[str, Meta(pattern="^own'$")]
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert("x", kind)
    assert in_words(refused.value, kind) == "Expected text of the form that the documentation states"


def test_each_pattern_of_a_type_has_words() -> None:
    patterns = {
        keyword.value.value
        for path in _SOURCES
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "Meta"
        for keyword in call.keywords
        if keyword.arg == "pattern" and isinstance(keyword.value, ast.Constant)
    }
    assert patterns == set(FORMS)


def _types() -> Iterator[tuple[str, Any]]:
    """Yield each constrained text and each enumeration in the fields of all structs, with its place."""
    for path in (*_SOURCES,):
        room = path.relative_to(_ROOT).parts[1]
        if room in {"protocol", "iceberg", "obligations", "scope", "settings", "apply"}:
            importlib.import_module(".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__"))
    pending: list[type[Any]] = [msgspec.Struct]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__.startswith("gateway.") and not getattr(kind, "__parameters__", ()):
            for field in msgspec.structs.fields(kind):
                yield f"{kind.__module__}.{kind.__qualname__}.{field.name}", field.type


def test_no_field_of_a_body_or_setting_shows_a_pattern_or_hides_its_values() -> None:
    checked = 0
    for place, hint in _types():
        for bad in ("\x00 ~ not\n", ["\x00 ~ not\n"]):
            try:
                msgspec.convert(bad, hint)
            except msgspec.ValidationError as error:
                text = in_words(error, hint)
                assert "regex" not in text and "Invalid enum" not in text, (place, text)
                checked += text != str(error)
            except (TypeError, NotImplementedError):
                continue
    assert checked > 100


def test_each_error_of_the_decoder_is_printed_in_words() -> None:
    found = {
        path.relative_to(_ROOT).as_posix()
        for path in _SOURCES
        for handler in ast.walk(ast.parse(path.read_text()))
        if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type is not None
        if {each.attr for each in ast.walk(handler.type) if isinstance(each, ast.Attribute)} & _ERRORS
        if _printed(handler)
    }
    assert found == set(_OTHERWISE)


def _printed(handler: ast.ExceptHandler) -> bool:
    """Return True if the handler uses its error outside of a call of `in_words`."""
    in_calls = {
        id(name)
        for call in ast.walk(handler)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "in_words"
        for name in ast.walk(call)
    }
    uses = [each for each in ast.walk(handler) if isinstance(each, ast.Name) and each.id == handler.name]
    return any(id(each) not in in_calls for each in uses)
