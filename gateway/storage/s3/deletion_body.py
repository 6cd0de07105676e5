# SPDX-License-Identifier: Apache-2.0
"""Read the keys in the body of a DeleteObjects request (S3 API reference, "DeleteObjects"). Pure.

A store must find no other keys in the body than this reader. So only the elements of the reference are accepted, and
nothing with which XML readers differ: no document type, entities, comments, processing instructions or attributes.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from gateway.scope.signing import UnsupportedSignRequest

__all__ = ["MAX_BODY", "MAX_KEYS", "keys_to_delete"]

MAX_KEYS: Final = 1000  # S3 API reference, DeleteObjects
MAX_BODY: Final = 2_000_000

_NAMESPACE: Final = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_DECLARATION: Final = re.compile(rb"\A\s*<\?xml version=[\"']1\.[01][\"']( encoding=[\"'](?i:utf-8)[\"'])?\s*\?>")
# Only the five predefined entities and character references, which all readers know.
_ENTITY: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


def keys_to_delete(body: bytes) -> tuple[str, ...]:
    """Return the keys in the body, at least one and at most 1,000. Raises UnsupportedSignRequest for another body."""
    if len(body) > MAX_BODY:
        raise UnsupportedSignRequest(f"The body of a deletion must have at most {MAX_BODY} bytes")
    content = _DECLARATION.sub(b"", body, count=1)
    if b"<!" in content or b"<?" in content or _ENTITY.search(content):
        raise _malformed("it has a document type, an entity, a comment or an instruction")
    try:
        # No document type and no entities of its own: they were refused above.
        root = ElementTree.fromstring(content.decode())  # noqa: S314 - same
    except (ElementTree.ParseError, UnicodeDecodeError):
        raise _malformed("it is not XML in UTF-8") from None
    if _name(root) != "Delete":
        raise _malformed("its root must be Delete")
    keys: list[str] = []
    for element in root:
        match _name(element):
            case "Object":
                keys.append(_key(element))
            case "Quiet" if (element.text or "").strip() in ("true", "false") and not len(element):
                continue
            case _:
                raise _malformed("it may have only the elements Object and Quiet")
    if not 1 <= len(keys) <= MAX_KEYS:
        raise _malformed(f"it must have 1 to {MAX_KEYS} objects")
    return tuple(keys)


def _key(element: ElementTree.Element) -> str:
    """Return the key of an object. A version, a size or a condition on it is refused."""
    names = [_name(child) for child in element]
    if names != ["Key"] or len(element[0]) or not element[0].text:
        raise _malformed("each object must have a key and nothing else")
    return element[0].text


def _name(element: ElementTree.Element) -> str:
    if element.attrib:
        raise _malformed("its elements must have no attributes")
    return element.tag.removeprefix(_NAMESPACE)


def _malformed(reason: str) -> UnsupportedSignRequest:
    return UnsupportedSignRequest(f"The body of the deletion cannot be signed: {reason}")
