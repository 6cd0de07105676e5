# SPDX-License-Identifier: Apache-2.0
"""Build audit records within their size limits, chain them by digests, and encode them for export."""
