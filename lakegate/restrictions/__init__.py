# SPDX-License-Identifier: Apache-2.0
"""Row filters and masks of `read-restrictions`: the part that the gateway, the reader and the Spark jobs share.
Pure.
"""
