package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/classify"
	"xol/kconfig"
	"xol/kernel"
)

// kconfigFlag is the flag that says how the kernel was built: a file with its
// configuration, or single options, which count more.
type kconfigFlag struct{ facts kernel.Facts }

// Set, String and Type implement pflag.Value.
func (k *kconfigFlag) Set(s string) error {
	name, value, isOption := strings.Cut(s, "=")
	if !isOption || value != "y" && value != "n" {
		return k.read(s)
	}
	o, err := kernel.Parse(name)
	if err != nil {
		return err
	}
	if k.facts.Given == nil {
		k.facts.Given = make(map[kernel.Option]bool)
	}
	k.facts.Given[o] = value == "y"
	return nil
}

func (k *kconfigFlag) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	k.facts.Config, err = kconfig.Read(f)
	return err
}

func (k *kconfigFlag) String() string { return "" }
func (k *kconfigFlag) Type() string   { return "FILE|OPTION=y|n" }

func (k *kconfigFlag) addTo(cmd *cobra.Command, set *pflag.FlagSet) {
	set.Var(k, "kconfig", "how the kernel was built: its .config or /boot/config-…, or one option (default what the kernel tells, else as Debian builds it); repeatable")
	_ = cmd.RegisterFlagCompletionFunc("kconfig", cobra.FixedCompletions(kconfigValues(), cobra.ShellCompDirectiveDefault))
}

// options returns what a profile has to know that no file is asked with.
func (k *kconfigFlag) options(arch, profile string) classify.KernelOptions {
	f := k.facts
	f.Arch = arch
	if f.Version == 0 {
		_, f.Version, _ = classify.ParseProfile(profile)
	}
	return f.Options()
}

// kconfigValues returns the options that the flag takes.
func kconfigValues() []string {
	var values []string
	for _, name := range kernel.Names() {
		values = append(values, name+"=y", name+"=n")
	}
	return values
}
