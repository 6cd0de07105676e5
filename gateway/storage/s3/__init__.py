# SPDX-License-Identifier: Apache-2.0
"""S3 and compatible stores, in groups by the way in which a store confines credentials: `aws`, `r2` and `oss`.

In each group the builder of policies and their evaluator (`proof`) share no code, so that the evaluator verifies the
builder independently. `signing` signs the requests of clients.
"""
