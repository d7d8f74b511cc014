package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of xol and of what it was built with",
		Args:  takes("", 0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "xol %s %s %s/%s%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, engineVersion())
			return err
		},
	}
}

// buildVersion returns the version that the go command recorded: a tag or a
// pseudo-version with the revision, "(devel)" where it knew neither.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
