package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
)

// decodeOptions are the flags of decode.
type decodeOptions struct {
	arch, addr string
	format     choice
	profile    profileFlag
	kconfig    kconfigFlag
}

func (a *app) decodeCommand() *cobra.Command {
	opt := decodeOptions{format: formatChoice()}
	cmd := &cobra.Command{
		Use:   "decode --arch A [HEX… | -]",
		Short: "Decode instructions from bytes: length, flow, target, PC-relative operand, text",
		Long: `Decode instructions from bytes, given in memory order.

The HEX arguments together are one run of bytes at --addr, decoded one
instruction after another up to its end or to the first error. They may be
written 9090, '90 90', 0x90,0x90 or '\x90\x90'; 0x does not make a number of them.

With - every line of standard input is one instruction, written HEX or ADDR HEX,
both hexadecimal; bytes after the instruction are ignored. There is one result
per line, in order; a line that cannot be decoded has an error as its result.

Exit status: 1 where anything was not decoded.`,
		Example: `  xol decode --arch amd64 f3 0f 1e fa 41 57
  xol decode --arch arm64 --addr 0x1000 -o json 000000d0
  echo 0x1000 e8fb0f0000 | xol decode --arch amd64 --profile linux-6.12 -o jsonl -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("addr") && isStdin(args) {
				return usageError(cmd, errors.New("--addr is for HEX arguments; lines of input carry their own"))
			}
			in, err := opt.parse(args)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.decode(in, &opt)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.arch, "arch", "", "architecture: "+strings.Join(arch.Names(), ", ")+", or another name of these (x86_64, aarch64, ppc64el …)")
	flags.StringVar(&opt.addr, "addr", "0", "address of the first HEX byte")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profile.addTo(cmd, flags, "add the verdict of this profile on the lone instruction")
	opt.kconfig.addTo(cmd, flags)
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(arch.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// decodeInput is what a command line asks to decode, and by which rules.
type decodeInput struct {
	isa     arch.ISA
	profile classify.Profile // nil: no verdicts
	lines   bool             // of standard input; else:
	addr    uint64
	code    []byte
}

// parse reads the flags and the arguments.
func (opt *decodeOptions) parse(args []string) (*decodeInput, error) {
	if opt.arch == "" {
		return nil, fmt.Errorf("--arch is missing (one of %s)", strings.Join(arch.Names(), ", "))
	}
	in := new(decodeInput)
	var err error
	if in.isa, err = arch.ByName(opt.arch); err != nil {
		return nil, err
	}
	if name := opt.profile.value; name != "" {
		var ok bool
		if in.profile, ok = in.isa.Profile(name, opt.kconfig.options(in.isa.Name(), name)); !ok {
			return nil, &analyze.ProfileError{Name: name, Known: in.isa.Profiles()}
		}
	}
	if isStdin(args) {
		in.lines = true
		return in, nil
	}
	if len(args) == 0 {
		return nil, errors.New("no bytes given (HEX arguments, or - for lines of standard input)")
	}
	if in.addr, err = parseHexAddr([]byte(opt.addr)); err != nil {
		return nil, fmt.Errorf("%w (--addr)", err)
	}
	in.code, err = parseHexArgs(args)
	return in, err
}

// isStdin reports whether the arguments ask for standard input.
func isStdin(args []string) bool { return len(args) == 1 && args[0] == "-" }

// decode prints the instructions of in.
func (a *app) decode(in *decodeInput, opt *decodeOptions) error {
	if in.profile != nil {
		if asked := analyze.StandIn(opt.profile.value, in.profile); asked != "" {
			a.report(errors.New(standsIn(in.profile.Name(), asked)))
		}
	}
	w, flush := a.results()
	d := &decoding{
		isa:     in.isa,
		profile: in.profile,
		out:     newDecodedWriter(w, opt.format.value, a.palette(), in.profile != nil),
	}
	var err error
	if in.lines {
		err = d.lines(a.in, w)
	} else {
		err = d.run(in.code, in.addr)
	}
	d.out.close()
	if err == nil && d.failures > 0 {
		err = answerNo
	}
	return flush(err)
}

// decoding decodes instructions that come one by one and prints each.
type decoding struct {
	isa      arch.ISA
	profile  classify.Profile // nil: no verdicts
	out      decodedWriter
	result   decoded // the one at hand
	failures int     // results that were errors
}

// run decodes instructions from code, up to its end or to the first error.
func (d *decoding) run(code []byte, addr uint64) error {
	for len(code) > 0 && d.failures == 0 {
		if err := d.instruction(addr, code); err != nil {
			return err
		}
		code, addr = code[d.result.inst.Len:], d.result.inst.Next()
	}
	return nil
}

// instruction decodes, judges and prints what code starts with.
func (d *decoding) instruction(addr uint64, code []byte) error {
	res := &d.result
	res.addr = addr
	if res.err = d.isa.Decode(&res.inst, code, addr); res.err != nil {
		d.failures++
	} else {
		res.text = d.isa.Text(&res.inst, nil)
	}
	if res.judged = d.profile != nil; res.judged {
		res.verdict = d.profile.Lone(code, addr)
	}
	return d.out.write(res)
}

// failure prints that there are no bytes to decode.
func (d *decoding) failure(addr uint64, err error) error {
	d.failures++
	d.result.addr, d.result.err, d.result.judged = addr, err, false
	return d.out.write(&d.result)
}
