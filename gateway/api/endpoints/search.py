# SPDX-License-Identifier: Apache-2.0
"""Searching for tables and views, an endpoint of the management API."""

from __future__ import annotations

from gateway.access.operations.search import SearchTabular
from gateway.api.serves import serve
from gateway.governance.search import Search

serve(SearchTabular, Search.tabulars)
