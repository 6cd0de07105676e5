// SPDX-License-Identifier: Apache-2.0

// Package sqlite3 has the error codes of SQLite (https://www.sqlite.org/rescode.html) that OpenFGA compares with.
package sqlite3

const (
	SQLITE_BUSY               = 5
	SQLITE_LOCKED             = 6
	SQLITE_CONSTRAINT         = 19
	SQLITE_BUSY_RECOVERY      = 261
	SQLITE_LOCKED_SHAREDCACHE = 262
	SQLITE_BUSY_SNAPSHOT      = 517
	SQLITE_BUSY_TIMEOUT       = 773
)
