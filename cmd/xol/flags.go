package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/classify"
)

// choice is a flag with a fixed set of values.
type choice struct {
	value   string
	allowed []string
}

// choiceOf returns a choice whose default is the first of the values.
func choiceOf(values ...string) choice {
	return choice{value: values[0], allowed: values}
}

// String, Set and Type implement pflag.Value.
func (c *choice) String() string { return c.value }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("want %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// addTo makes c a flag of cmd, in one of cmd's flag sets.
func (c *choice) addTo(cmd *cobra.Command, set *pflag.FlagSet, name, short, usage string) {
	set.VarP(c, name, short, usage)
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// profileNames are the values of --profile.
var profileNames = []string{classify.ISA, classify.Linux612, classify.Uprobe612}

// profileChoice returns the flag --profile, empty unless it is given.
func profileChoice() choice { return choice{allowed: profileNames} }
