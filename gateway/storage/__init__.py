# SPDX-License-Identifier: Apache-2.0
"""The adapter to object stores.

Small files written, read, listed and deleted with the gateway's own or a given credential.
"""
