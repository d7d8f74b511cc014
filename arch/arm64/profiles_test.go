package arm64

import "xol/classify"

// The ISA's own rules, without those that hold on every ISA.

func isaProfile() classify.Profile { return classify.New(classify.ISA, newISAJudge()) }

func kprobeProfile(v classify.Version) classify.Profile {
	return classify.New(classify.ProfileName(classify.Kprobes, v), newKprobeJudge(v))
}

func uprobeProfile(v classify.Version) classify.Profile {
	return classify.New(classify.ProfileName(classify.Uprobes, v), newUprobeJudge(v))
}
