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

// version is what the build says it is (go build -ldflags "-X main.version=v1.2.3");
// make does so with what scripts/version finds.
var version string

// buildVersion returns version or, where the build says nothing, what the go command
// recorded: a tag or a pseudo-version with the revision, "(devel)" where it knew
// neither.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
