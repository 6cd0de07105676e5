// SPDX-License-Identifier: Apache-2.0

// Package sqlite has the names of the driver that OpenFGA compiles against, without the database.
package sqlite

// Error is an error of the database. No value of it exists in this build.
type Error struct{}

func (*Error) Error() string { return "this build has no SQLite" }

// Code returns a number that is no code of an error.
func (*Error) Code() int { return 0 }
