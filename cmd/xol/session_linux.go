//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"xol/session"
)

// guardName is the command that a session starts to trace the program. It takes
// everything back where xol dies.
const guardName = "session-guard"

func guardCommand() *cobra.Command {
	return &cobra.Command{Use: guardName, Hidden: true, RunE: func(*cobra.Command, []string) error { return session.Guard() }}
}

// guarded adds the guard to options.
func guarded(opt session.Options) (session.Options, error) {
	self, err := os.Executable()
	opt.Guard = []string{self, guardName}
	return opt, err
}

func launch(ctx context.Context, cmd session.Command, opt session.Options) (probing, error) {
	opt, err := guarded(opt)
	if err != nil {
		return nil, err
	}
	s, err := session.Start(ctx, cmd, opt)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func attach(ctx context.Context, pid int, opt session.Options) (probing, error) {
	opt, err := guarded(opt)
	if err != nil {
		return nil, err
	}
	s, err := session.Attach(ctx, pid, opt)
	if err != nil {
		return nil, err
	}
	return s, nil
}
