# SPDX-License-Identifier: Apache-2.0
"""The endpoint of the management API that searches for tables and views."""

from __future__ import annotations

from gateway.access.operations.search import SearchTabular
from gateway.api.serves import serve
from gateway.governance.search import Search

serve(SearchTabular, Search.tabulars)
