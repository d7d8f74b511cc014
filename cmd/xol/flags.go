package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/arch"
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

// profileFlag is the flag --profile, empty unless it is given. Which versions
// there are depends on the ISA.
type profileFlag struct{ value string }

// String, Set and Type implement pflag.Value.
func (f *profileFlag) String() string { return f.value }

func (f *profileFlag) Set(s string) error {
	for _, isa := range allISAs() {
		if _, ok := isa.Profile(s, classify.KernelOptions{}); ok {
			f.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s, or a version between", strings.Join(allProfiles(), ", "))
}

func (f *profileFlag) Type() string { return "isa|linux-X.Y|uprobe-linux-X.Y" }

func (f *profileFlag) addTo(cmd *cobra.Command, set *pflag.FlagSet, usage string) {
	set.Var(f, "profile", usage)
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(allProfiles(), cobra.ShellCompDirectiveNoFileComp))
}

func allISAs() (all []arch.ISA) {
	for _, name := range arch.Names() {
		if isa, err := arch.ByName(name); err == nil {
			all = append(all, isa)
		}
	}
	return all
}

// allProfiles returns the names of the profiles of all ISAs, each once.
func allProfiles() []string {
	var names []string
	for _, isa := range allISAs() {
		for _, profile := range isa.Profiles() {
			if !slices.Contains(names, profile) {
				names = append(names, profile)
			}
		}
	}
	return names
}

// standsIn says that one profile answers for another.
func standsIn(profile, asked string) string {
	return fmt.Sprintf("%s answers for %s: it is the nearest older version whose answers are known", profile, asked)
}
