//go:build !linux || !(amd64 || arm64 || ppc64 || ppc64le)

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"xol/session"
)

var errNotHere = errors.New("programs are probed on Linux for amd64, arm64 and ppc64 only")

func guardCommand() *cobra.Command {
	return &cobra.Command{Use: "session-guard", Hidden: true, RunE: func(*cobra.Command, []string) error { return errNotHere }}
}

func launch(context.Context, session.Command, session.Options) (probing, error) {
	return nil, errNotHere
}

func attach(context.Context, int, session.Options) (probing, error) { return nil, errNotHere }
