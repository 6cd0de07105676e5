# SPDX-License-Identifier: Apache-2.0
"""S3 and compatible stores. Stores that restrict vended credentials in the same way share a folder: `aws`, `r2`, `oss`.

In each folder the builder of policies and their evaluator (`proof`) share no code, so that the evaluator verifies the
builder independently. `signing` signs the requests of clients.
"""
