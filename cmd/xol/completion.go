package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that there is a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script of a shell",
		Example: `  source <(xol completion bash)
  xol completion zsh >"${fpath[1]}/_xol"
  xol completion fish >~/.config/fish/completions/xol.fish`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			err := takes("the name of a shell", 1, 1)(cmd, args)
			if err == nil && !slices.Contains(shells, args[0]) {
				err = fmt.Errorf("%q is no shell that it knows (%s)", args[0], strings.Join(shells, ", "))
			}
			return err
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
		},
	}
}
