package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/classify"
)

// kconfig is the flag that sets the kernel's own options. It starts with
// Debian's.
type kconfig struct{ classify.KernelOptions }

func debianKconfig() kconfig { return kconfig{classify.DebianOptions()} }

// kconfigOptions are the kernel's names of the options.
var kconfigOptions = [...]struct {
	name  string
	field func(*classify.KernelOptions) *bool
}{
	{"PREEMPTION", func(o *classify.KernelOptions) *bool { return &o.Preemption }},
	{"MITIGATION_RETPOLINE", func(o *classify.KernelOptions) *bool { return &o.Retpoline }},
	{"CFI_CLANG", func(o *classify.KernelOptions) *bool { return &o.CFI }},
	{"KPROBES_ON_FTRACE", func(o *classify.KernelOptions) *bool { return &o.FtraceProbes }},
}

// Set, String and Type implement pflag.Value.
func (k *kconfig) Set(s string) error {
	name, value, _ := strings.Cut(strings.TrimPrefix(s, "CONFIG_"), "=")
	for _, o := range kconfigOptions {
		if o.name == name && (value == "y" || value == "n") {
			*o.field(&k.KernelOptions) = value == "y"
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(kconfigValues(), ", "))
}

func (k *kconfig) String() string { return "" }
func (k *kconfig) Type() string   { return "OPTION=y|n" }

func (k *kconfig) addTo(cmd *cobra.Command, set *pflag.FlagSet) {
	set.Var(k, "kconfig", "an option of the kernel, as in its .config (default Debian's); repeatable")
	_ = cmd.RegisterFlagCompletionFunc("kconfig", cobra.FixedCompletions(kconfigValues(), cobra.ShellCompDirectiveNoFileComp))
}

// kconfigValues returns all values that the flag takes.
func kconfigValues() []string {
	var values []string
	for _, o := range kconfigOptions {
		values = append(values, o.name+"=y", o.name+"=n")
	}
	return values
}
