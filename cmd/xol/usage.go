package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError puts the sub-command's name before an error of its flags or
// arguments, unless it is nil, and says in our words what the flag library
// found.
func usageError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	err = flagError(cmd, err)
	if !cmd.HasParent() {
		return err
	}
	return fmt.Errorf("%s: %w", cmd.Name(), err)
}

// flagError says what is wrong with a flag and what would be right.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	help := cmd.CommandPath() + " --help"
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		return fmt.Errorf("there is no flag %s (%s lists them)", name, help)
	case errors.As(err, &missing):
		return fmt.Errorf("%s is without its value (%s)", flagName(missing.GetFlag()), valueName(missing.GetFlag()))
	case errors.As(err, &invalid):
		return fmt.Errorf("%s %q: %s", flagName(invalid.GetFlag()), invalid.GetValue(), wanted(invalid))
	case errors.As(err, &syntax):
		return fmt.Errorf("%q is no flag (%s lists them)", syntax.GetSpecifiedFlag(), help)
	}
	return err
}

func flagName(f *pflag.Flag) string { return "--" + f.Name }

// valueName is what the help calls a flag's value.
func valueName(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	return name
}

// wanted says which values a flag takes.
func wanted(e *pflag.InvalidValueError) string {
	var number *strconv.NumError
	switch kind := e.GetFlag().Value.Type(); {
	case kind == "bool":
		return "want true or false"
	case kind == "duration":
		return "want a time such as 500ms, 10s or 2m"
	case !errors.As(e, &number):
		return e.Unwrap().Error()
	case errors.Is(number, strconv.ErrRange):
		return "the number is too large"
	case kind == "uint" || kind == "uint64":
		return "want a whole number that is not negative"
	}
	return "want a whole number"
}

// takes checks that there are as many arguments as usage names, "FILE PLACE":
// at least so many where it ends in "…".
func takes(usage string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case most == 0 && len(args) > 0:
			return fmt.Errorf("it takes no arguments, not %q (%s --help)", args[0], cmd.CommandPath())
		case len(args) < least && len(args) == 0:
			return fmt.Errorf("%s is missing (%s --help)", usage, cmd.CommandPath())
		case len(args) < least:
			return fmt.Errorf("it takes %s, and there is only %q (%s --help)", usage, args[0], cmd.CommandPath())
		case len(args) > most:
			return fmt.Errorf("it takes %s, and %q is too much (%s --help)", usage, args[most], cmd.CommandPath())
		}
		return nil
	}
}

// helpCommand prints the help of a sub-command.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(args)
			}
			found.InitDefaultHelpFlag() // so that it is listed
			return found.Help()
		},
		DisableFlagsInUseLine: true,
	}
}

func unknownCommand(args []string) error {
	return fmt.Errorf("unknown command %q (xol --help lists them)", args[0])
}
