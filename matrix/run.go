//go:build unicorn

package matrix

import (
	"context"
	"errors"
	"slices"

	"xol/arch"
	"xol/runtime"
)

// lifeCase is a row of the matrix.
type lifeCase struct {
	name string
	run  func(l *lab)
	// except says why the case makes no sense on a target in a mode; nil, or
	// an empty answer, where it does.
	except  func(target string, mode Mode) string
	options func(l *lab, opt *runtime.Options)
	cpus    int  // 1 where it is 0
	exact   bool // instructions are counted one by one
}

// cases is the table.
func cases() []lifeCase {
	return slices.Concat(
		registrationCases, handlerCases, instructionCases, faultCases,
		aggregateCases, nestedCases, boostCases, optimizeCases, otherCases, returnCases, familyCases, tracingCases)
}

// Run carries out every case whose name matches on every target in every mode,
// and calls each with the result of one at a time: those of a case one after the
// other. All names are matched first. It ends early where ctx does, or each
// returns an error.
func Run(ctx context.Context, match func(name string) bool, each func(Result) error) error {
	all := slices.DeleteFunc(cases(), func(c lifeCase) bool { return !match(c.name) })
	for _, c := range all {
		for _, target := range arch.Names() {
			for _, mode := range Modes() {
				result := runCase(ctx, &c, target, mode)
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := each(result); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runCase returns a field of the matrix.
func runCase(ctx context.Context, c *lifeCase, target string, mode Mode) Result {
	result := Result{Case: c.name, Target: target, Mode: mode}
	if reason := c.reason(target, mode); reason != "" {
		result.Outcome, result.Reason = NotApplicable, reason
		return result
	}
	l, err := openLab(ctx, c, target, mode)
	if err == nil {
		c.run(l)
		err = errors.Join(l.err, l.close())
	}
	if err != nil {
		result.Outcome, result.Reason = Fail, err.Error()
	}
	return result
}

// reason says why a case is not applicable; empty where it is.
func (c *lifeCase) reason(target string, mode Mode) string {
	if mode == SteppedTrap && target == "arm64" {
		return "the engine has no single-step exception on arm64"
	}
	if c.except == nil {
		return ""
	}
	return c.except(target, mode)
}

// only returns an except for cases of one mode.
func only(only Mode, why string) func(string, Mode) string {
	return func(_ string, mode Mode) string {
		if mode == only {
			return ""
		}
		return why
	}
}

// not returns an except for cases of all modes but one.
func not(not Mode, why string) func(string, Mode) string {
	return func(_ string, mode Mode) string {
		if mode == not {
			return why
		}
		return ""
	}
}
