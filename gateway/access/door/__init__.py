# SPDX-License-Identifier: Apache-2.0
"""The door, the only code that decides operations.

It queries OpenFGA and OPA, writes audit records, and mints permits.
"""
