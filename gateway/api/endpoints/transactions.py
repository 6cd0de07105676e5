# SPDX-License-Identifier: Apache-2.0
"""The transaction endpoint of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.transactions import CommitTransaction
from gateway.api.serves import serve
from gateway.catalog.commits import Commits

serve(CommitTransaction, Commits.transaction)
