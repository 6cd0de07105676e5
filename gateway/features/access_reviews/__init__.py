# SPDX-License-Identifier: Apache-2.0
"""Reviews of existing grants: reviewers certify or revoke them."""
