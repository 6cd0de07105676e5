// SPDX-License-Identifier: Apache-2.0

// Package certwatcher refuses certificates: the embedded OpenFGA listens on loopback without TLS.
package certwatcher

import (
	"context"
	"crypto/tls"
	"errors"
)

var errMissing = errors.New("this build has no TLS; use the program of OpenFGA's developers")

// CertWatcher has the methods that OpenFGA calls. No value of it exists.
type CertWatcher struct{}

// New fails.
func New(_, _ string) (*CertWatcher, error) { return nil, errMissing }

// RegisterCallback does nothing.
func (*CertWatcher) RegisterCallback(func(tls.Certificate)) {}

// Start fails.
func (*CertWatcher) Start(context.Context) error { return errMissing }

// GetCertificate fails.
func (*CertWatcher) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errMissing
}
