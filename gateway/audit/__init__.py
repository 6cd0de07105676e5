# SPDX-License-Identifier: Apache-2.0
"""Write audit records to the database.

Records of reads and denials wait in a bounded buffer. Records that must be durable before the response are written in
groups, with one insert for all that wait (group commit).
"""
