# SPDX-License-Identifier: Apache-2.0
"""The page on which people sign in with a browser.

Who has no token yet must be able to open it, so it is open; it is the same for everybody and holds nothing but what the
provider publishes. Everything it shows comes over the interface, with the token of whoever signed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, OpenTo, ReadOperation


@dataclass(frozen=True)
class ShowUi(ReadOperation):
    """The page on which people sign in and see who they are here and what they may see."""

    endpoint: ClassVar[str] = "GET /ui"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)


@dataclass(frozen=True)
class GetUiAsset(ReadOperation):
    """The script or the style of that page."""

    endpoint: ClassVar[str] = "GET /ui/{asset}"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)
