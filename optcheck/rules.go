package optcheck

import (
	"xol/classify"
	"xol/place"
)

// Reason says why a breakpoint cannot become a jump. Each ISA has a rule for
// every reason that can occur there.
type Reason uint8

// The reasons. The identifiers of the rules are the ISA's name and the stem in
// the comment.
const (
	// What must stay. The culprit is the instruction or the site.
	KeepLandingPad  Reason = iota // landing-pad: the probe is on the endbr64 or bti of an entry
	KeepFtrace                    // region-ftrace-site
	KeepJumpLabel                 // region-jump-label
	KeepStaticCall                // region-static-call
	KeepAlternative               // region-alternative
	KeepBug                       // region-bug
	KeepException                 // region-exception-entry: __ex_table lists the instruction
	KeepCFITrap                   // region-cfi-trap
	KeepData                      // region-data
	KeepProbe                     // region-other-probe: the caller has armed another probe inside

	// Who can land strictly inside. The culprit is where they come from.
	LandedBranch    // region-jump-target
	LandedSwitch    // region-switch-target
	LandedReturn    // region-return-address
	LandedEntry     // region-entry-point
	LandedSymbol    // region-symbol
	LandedLocal     // region-local-entry
	LandedPointer   // region-code-pointer
	LandedTaken     // region-address-taken
	LandedExFixup   // region-exception-fixup
	LandedUnwind    // region-unwind-landing-pad
	LandedJumpLabel // region-jump-label-target
	LandedIndirect  // region-landing-pad

	// What is not known or does not fit.
	UnresolvedJump // region-indirect-jump: the culprit is the jump
	UnreadTables   // region-unread-tables: tables of the file that tell who lands are damaged
	Undecodable    // region-undecodable: the culprit is the gap
	BeyondFunction // region-beyond-function: fewer bytes than the jump has; the culprit is the function's end

	Reasons = int(iota)
)

// Rules is an ISA's table of rules. A rule without an ID belongs to a reason
// that cannot occur on that ISA.
type Rules [Reasons]classify.Rule

// landed is the reason for each kind of landing.
var landed = [place.LandingKinds]Reason{
	place.LandBranch: LandedBranch, place.LandSwitch: LandedSwitch, place.LandReturn: LandedReturn,
	place.LandEntry: LandedEntry, place.LandSymbol: LandedSymbol, place.LandLocalEntry: LandedLocal,
	place.LandPointer: LandedPointer, place.LandTaken: LandedTaken, place.LandExFixup: LandedExFixup,
	place.LandUnwind: LandedUnwind, place.LandJumpLabel: LandedJumpLabel, place.LandIndirect: LandedIndirect,
}
