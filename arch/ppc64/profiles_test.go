package ppc64

import "xol/classify"

// The ISA's own rules, without those that hold on every ISA.

func isaProfile(a ISA) classify.Profile { return classify.New(classify.ISA, newISAJudge(a)) }

func kprobeProfile(a ISA) classify.Profile {
	return classify.New(classify.ProfileName(classify.Kprobes, linux6_12), &kprobeJudge{a})
}

func uprobeProfile(a ISA) classify.Profile {
	return classify.New(classify.ProfileName(classify.Uprobes, linux6_12), &uprobeJudge{a})
}
