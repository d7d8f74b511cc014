package kernel

import (
	"errors"
	"strings"
	"testing"

	"xol/classify"
	"xol/kconfig"
)

// The banners are those of kernels as distributions ship them.
func TestFromBanner(t *testing.T) {
	for _, tc := range []struct {
		name, banner, release, version string
		preempts, known                bool
	}{
		{"Debian 5.10", "Linux version 5.10.0-30-amd64 (debian-kernel@lists.debian.org) (gcc-10 (Debian 10.2.1-6) 10.2.1 20210110, GNU ld (GNU Binutils for Debian) 2.35.2) #1 SMP Debian 5.10.218-1 (2024-06-01)\n",
			"5.10.0-30-amd64", "5.10.218", false, true},
		{"Debian 6.1", "Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)",
			"6.1.0-50-amd64", "6.1.176", true, true},
		{"Debian 6.12", "Linux version 6.12.117+deb12-arm64 (debian-kernel@lists.debian.org) (aarch64-linux-gnu-gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) # SMP Debian 6.12.117-1~deb12u1 (2026-11-14)",
			"6.12.117+deb12-arm64", "6.12.117", false, true},
		{"Debian, a candidate", "Linux version 7.3-powerpc64le (debian-kernel@lists.debian.org) (powerpc64le-linux-gnu-gcc-16 (Debian 16.2.0-3) 16.2.0, GNU ld (GNU Binutils for Debian) 2.47) #1 SMP PREEMPT Debian 7.3~rc7-1~exp1 (2026-10-16)",
			"7.3-powerpc64le", "7.3", true, true},
		{"Ubuntu", "Linux version 5.15.0-91-generic (buildd@lcy02-amd64-045) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023 (Ubuntu 5.15.0-91.101-generic 5.15.131)",
			"5.15.0-91-generic", "5.15.131", false, true},
		{"Fedora", "Linux version 6.8.9-300.fc40.x86_64 (mockbuild@a) (gcc (GCC) 14.0.1 20240411 (Red Hat 14.0.1-0), GNU ld version 2.41-34.fc40) #1 SMP PREEMPT_DYNAMIC Thu May  2 18:59:06 UTC 2024",
			"6.8.9-300.fc40.x86_64", "6.8.9", true, true},
		{"from the sources", "Linux version 6.12.0 (me@here) (gcc 12) #1 SMP PREEMPT_RT Sat Jan 1 00:00:00 UTC 2026", "6.12.0", "6.12", true, true},
		{"cut off", "Linux version 6.12.3", "6.12.3", "6.12.3", false, false},
		{"another text", "Linux is great", "", "0.0", false, false},
		{"no number", "Linux version x", "", "0.0", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := FromBanner(tc.banner)
			if got.Release != tc.release || got.Version.String() != tc.version || got.Preemption != tc.preempts || got.Known != tc.known {
				t.Errorf("%+v, version %v", got, got.Version)
			}
		})
	}
}

func TestFromVermagic(t *testing.T) {
	for _, tc := range []struct {
		magic, version string
		preempts       bool
	}{
		{"6.12.117+deb13-amd64 SMP preempt mod_unload modversions ", "6.12.117", true},
		{"6.12.117+deb13-arm64 SMP mod_unload modversions aarch64", "6.12.117", false},
		{"6.1.0-50-amd64 SMP preempt mod_unload modversions", "6.1", true},
		{"5.10.0-30-rt-amd64 SMP preempt_rt mod_unload", "5.10", true},
		{"", "0.0", false},
	} {
		if got := FromVermagic(tc.magic); got.Version.String() != tc.version || got.Preemption != tc.preempts {
			t.Errorf("%s: %+v, version %v", tc.magic, got, got.Version)
		}
	}
}

func config(t *testing.T, text string) *kconfig.Config {
	t.Helper()
	c, err := kconfig.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func has(symbol string) func(string) bool {
	return func(name string) bool { return name == symbol }
}

func TestSetting(t *testing.T) {
	told := Identity{Version: classify.Linux(6, 1).Patch(9), Preemption: false, Known: true}
	for _, tc := range []struct {
		name   string
		facts  Facts
		option Option
		want   string
		source Source
	}{
		{"Debian's 5.10", Facts{Arch: "amd64", Identity: Identity{Version: classify.Linux(5, 10)}}, Preemption, "CONFIG_PREEMPTION=n", Assumed},
		{"Debian's 6.1", Facts{Arch: "amd64", Identity: Identity{Version: classify.Linux(6, 1).Patch(176)}}, Preemption, "CONFIG_PREEMPTION=y", Assumed},
		{"Debian's 6.1, IBT", Facts{Arch: "amd64", Identity: Identity{Version: classify.Linux(6, 1).Patch(176)}}, IBT, "CONFIG_X86_KERNEL_IBT=n", Assumed},
		{"Debian's 6.12, IBT", Facts{Arch: "amd64", Identity: Identity{Version: classify.Linux(6, 12)}}, IBT, "CONFIG_X86_KERNEL_IBT=y", Assumed},
		{"Debian's 6.12 on arm64", Facts{Arch: "arm64", Identity: Identity{Version: classify.Linux(6, 12)}}, Fprobe, "CONFIG_FPROBE=n", Assumed},
		{"Debian's 6.12 on ppc64le", Facts{Arch: "ppc64le", Identity: Identity{Version: classify.Linux(6, 12)}}, Fprobe, "CONFIG_FPROBE=y", Assumed},
		{"by the older name", Facts{Arch: "amd64", Identity: told}, Retpoline, "CONFIG_RETPOLINE=y", Assumed},
		{"by the newer name", Facts{Arch: "amd64", Identity: Identity{Version: classify.Linux(7, 3)}}, Retpoline, "CONFIG_MITIGATION_RETPOLINE=y", Assumed},
		{"the banner", Facts{Arch: "amd64", Identity: told}, Preemption, "CONFIG_PREEMPTION=n", Told},
		{"a symbol", Facts{Arch: "amd64", Identity: told, HasSymbol: has("ibt_save")}, IBT, "CONFIG_X86_KERNEL_IBT=y", Told},
		{"no symbol", Facts{Arch: "amd64", Identity: told, HasSymbol: has("ibt_save")}, KprobesOnFtrace, "CONFIG_KPROBES_ON_FTRACE=n", Told},
		{"a symbol that it would not have", Facts{Arch: "amd64", Identity: told, HasSymbol: has("__within_notrace_func")}, OnNotrace, "CONFIG_KPROBE_EVENTS_ON_NOTRACE=n", Told},
		{"a symbol that may be missing", Facts{Arch: "amd64", Identity: told, HasSymbol: has("")}, OnNotrace, "CONFIG_KPROBE_EVENTS_ON_NOTRACE=n", Assumed},
		{"the banner before a symbol", Facts{Arch: "amd64", Identity: told, HasSymbol: has("preempt_schedule")}, Preemption, "CONFIG_PREEMPTION=n", Told},
		{"a configuration", Facts{Arch: "amd64", Identity: told, Config: config(t, "CONFIG_PREEMPTION=y")}, Preemption, "CONFIG_PREEMPTION=y", Configured},
		{"a configuration without it", Facts{Arch: "amd64", Identity: told, Config: config(t, "CONFIG_SMP=y")}, KprobesOnFtrace, "CONFIG_KPROBES_ON_FTRACE=n", Configured},
		{"somebody", Facts{Arch: "amd64", Identity: told, Config: config(t, "CONFIG_PREEMPTION=y"), Given: map[Option]bool{Preemption: false}}, Preemption, "CONFIG_PREEMPTION=n", Given},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.facts.Setting(tc.option); got.String() != tc.want || got.Source != tc.source {
				t.Errorf("%v, from %d", got, got.Source)
			}
		})
	}
	f := Facts{Arch: "amd64"}
	for o := range numOptions {
		if s := f.Setting(o); s.Name == "" || s.Source != Assumed {
			t.Errorf("option %d: %v, source %d", o, s, s.Source)
		}
	}
}

func TestParse(t *testing.T) {
	for _, name := range Names() {
		for _, s := range []string{name, kconfig.Prefix + name} {
			if _, err := Parse(s); err != nil {
				t.Error(err)
			}
		}
	}
	var unknown *OptionError
	if _, err := Parse("CONFIG_SMP"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "PREEMPTION") {
		t.Errorf("SMP: %v", err)
	}
}
