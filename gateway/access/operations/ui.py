# SPDX-License-Identifier: Apache-2.0
"""The page on which people sign in with a browser.

Who has no token yet must be able to open it, so it is open; it is the same for everybody and holds nothing but what the
provider publishes. Everything it shows comes over the interface, with the token of whoever signed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Operation


@dataclass(frozen=True)
class ShowUi(Operation):
    """The page on which people sign in and see who they are here and what they may see."""

    endpoint: ClassVar[str] = "GET /ui"
    open_to_all: ClassVar[bool] = True


@dataclass(frozen=True)
class GetUiAsset(Operation):
    """The script or the style of that page."""

    endpoint: ClassVar[str] = "GET /ui/{asset}"
    open_to_all: ClassVar[bool] = True
