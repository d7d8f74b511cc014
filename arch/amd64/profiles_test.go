package amd64

import "xol/classify"

// The ISA's own rules, without those that hold on every ISA.

func isaProfile() classify.Profile { return classify.New(classify.ISA, newISAJudge()) }

func kprobeProfile(v classify.Version, opt classify.KernelOptions) classify.Profile {
	return classify.New(classify.ProfileName(classify.Kprobes, v), newKprobeJudge(v, opt))
}

func uprobeProfile(v classify.Version) classify.Profile {
	return classify.New(classify.ProfileName(classify.Uprobes, v), newUprobeJudge(v))
}
