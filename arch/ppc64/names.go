package ppc64

// conditions are the names of the branches on a bit of a CR field: those on a
// clear bit, then those on a set one.
var conditions = [8]string{"ge", "le", "ne", "ns", "lt", "gt", "eq", "so"}

// countNames are the names of the branches that decrement CTR: for a clear bit
// of the CR, for a set one and without such a bit; and while CTR is not 0, or
// when it is.
var countNames = [3][2]string{{"bdnzf", "bdzf"}, {"bdnzt", "bdzt"}, {"bdnz", "bdz"}}

// crBits are the bits of a CR field.
var crBits = [4]string{"lt", "gt", "eq", "so"}

// trapNames are the endings of trap instructions for the values of TO that
// have a name.
var trapNames = [32]string{
	1: "lgt", 2: "llt", 4: "eq", 5: "lge", 6: "lle", 8: "gt", 12: "ge",
	16: "lt", 20: "le", 24: "ne", 31: "u",
}

// sprName names a special-purpose register.
type sprName struct {
	spr  uint16
	name string
	dir  sprDir
}

// sprDir says which of mfspr and mtspr have an own mnemonic for a register.
type sprDir uint8

const (
	sprRead  sprDir = 1
	sprWrite sprDir = 2
	sprBoth         = sprRead | sprWrite
)

// sprNames are sorted by number. The names and directions are those of GNU
// binutils.
var sprNames = [...]sprName{
	{1, "xer", sprBoth},
	{3, "udscr", sprBoth},
	{4, "rtcu", sprRead},
	{5, "rtcl", sprRead},
	{8, "lr", sprBoth},
	{9, "ctr", sprBoth},
	{13, "uamr", sprBoth},
	{17, "dscr", sprBoth},
	{18, "dsisr", sprBoth},
	{19, "dar", sprBoth},
	{20, "rtcu", sprWrite},
	{21, "rtcl", sprWrite},
	{22, "dec", sprBoth},
	{25, "sdr1", sprBoth},
	{26, "srr0", sprBoth},
	{27, "srr1", sprBoth},
	{28, "cfar", sprBoth},
	{29, "amr", sprBoth},
	{48, "pidr", sprBoth},
	{61, "iamr", sprBoth},
	{128, "tfhar", sprWrite},
	{129, "tfiar", sprWrite},
	{130, "texasr", sprWrite},
	{131, "texasru", sprWrite},
	{136, "ctrl", sprRead},
	{152, "ctrl", sprWrite},
	{153, "fscr", sprBoth},
	{157, "uamor", sprBoth},
	{159, "pspb", sprBoth},
	{176, "dpdes", sprBoth},
	{180, "dawr0", sprBoth},
	{181, "dawr1", sprBoth},
	{186, "rpr", sprBoth},
	{187, "ciabr", sprBoth},
	{188, "dawrx0", sprBoth},
	{189, "dawrx1", sprBoth},
	{190, "hfscr", sprBoth},
	{256, "vrsave", sprBoth},
	{259, "usprg3", sprRead},
	{268, "tb", sprRead},
	{269, "tbu", sprRead},
	{280, "asr", sprBoth},
	{282, "ear", sprBoth},
	{284, "tbl", sprWrite},
	{285, "tbu", sprWrite},
	{286, "tbu40", sprWrite},
	{287, "pvr", sprRead},
	{304, "hsprg0", sprBoth},
	{305, "hsprg1", sprBoth},
	{306, "hdisr", sprBoth},
	{307, "hdar", sprBoth},
	{308, "spurr", sprBoth},
	{309, "purr", sprBoth},
	{310, "hdec", sprBoth},
	{313, "hrmor", sprBoth},
	{314, "hsrr0", sprBoth},
	{315, "hsrr1", sprBoth},
	{318, "lpcr", sprBoth},
	{319, "lpidr", sprBoth},
	{336, "hmer", sprBoth},
	{337, "hmeer", sprBoth},
	{338, "pcr", sprBoth},
	{339, "heir", sprBoth},
	{349, "amor", sprBoth},
	{446, "tir", sprRead},
	{464, "ptcr", sprBoth},
	{496, "usprg0", sprBoth},
	{497, "usprg1", sprBoth},
	{505, "urmor", sprBoth},
	{506, "usrr0", sprBoth},
	{507, "usrr1", sprBoth},
	{511, "smfctrl", sprBoth},
	{736, "usier2", sprRead},
	{737, "usier3", sprRead},
	{738, "ummcr3", sprRead},
	{752, "sier2", sprWrite},
	{753, "sier3", sprWrite},
	{754, "mmcr3", sprWrite},
	{768, "usier", sprRead},
	{769, "ummcr2", sprBoth},
	{770, "ummcra", sprBoth},
	{771, "upmc1", sprBoth},
	{772, "upmc2", sprBoth},
	{773, "upmc3", sprBoth},
	{774, "upmc4", sprBoth},
	{775, "upmc5", sprBoth},
	{776, "upmc6", sprBoth},
	{779, "ummcr0", sprBoth},
	{780, "usiar", sprRead},
	{781, "usdar", sprRead},
	{782, "ummcr1", sprRead},
	{784, "sier", sprWrite},
	{786, "mmcra", sprWrite},
	{787, "pmc1", sprWrite},
	{788, "pmc2", sprWrite},
	{789, "pmc3", sprWrite},
	{790, "pmc4", sprWrite},
	{791, "pmc5", sprWrite},
	{792, "pmc6", sprWrite},
	{795, "mmcr0", sprWrite},
	{796, "siar", sprWrite},
	{797, "sdar", sprWrite},
	{798, "mmcr1", sprWrite},
	{800, "bescrs", sprBoth},
	{801, "bescrsu", sprBoth},
	{802, "bescrr", sprBoth},
	{803, "bescrru", sprBoth},
	{804, "ebbhr", sprBoth},
	{805, "ebbrr", sprBoth},
	{806, "bescr", sprBoth},
	{815, "tar", sprBoth},
	{816, "asdr", sprBoth},
	{823, "psscr", sprBoth},
	{848, "ic", sprBoth},
	{849, "vtb", sprBoth},
	{855, "hpsscr", sprBoth},
	{896, "ppr", sprBoth},
	{898, "ppr32", sprBoth},
	{1023, "pir", sprRead},
}

// sprBanks are groups of four registers with one name and a number, every
// step-th SPR from first on.
var sprBanks = [...]struct {
	first, step uint16
	name        string
}{
	{272, 1, "sprg"},
	{528, 2, "ibatu"}, {529, 2, "ibatl"}, {536, 2, "dbatu"}, {537, 2, "dbatl"},
}
