# SPDX-License-Identifier: Apache-2.0
"""Create the components that `gateway.app` connects: adapters to external systems, use cases and background tasks.

Concrete classes are chosen only here and in `gateway.app`. Other rooms receive plain values and ports.
"""
