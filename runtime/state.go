package runtime

import "fmt"

// siteState is what stands in the text at a site.
type siteState uint8

const (
	siteDisarmed     siteState = iota // the program's own instruction
	siteArmed                         // a breakpoint or, at a patchable entry, a call
	siteOptimizing                    // a breakpoint, which is becoming a jump
	siteOptimized                     // a jump
	siteUnoptimizing                  // a jump, which is becoming a breakpoint
	siteLost                          // new text that must not be probed
	siteReplaced                      // new text, which another site is for
	siteGone                          // nothing: the text has been unloaded
)

var siteStateNames = [...]string{
	"disarmed", "armed", "optimizing", "optimized", "unoptimizing", "lost", "replaced", "gone",
}

// String returns the state in a word.
func (s siteState) String() string { return siteStateNames[s] }

// armed reports whether the site may be hit.
func (s siteState) armed() bool { return s >= siteArmed && s <= siteUnoptimizing }

// jumping reports whether a jump may stand, or some of one.
func (s siteState) jumping() bool { return s >= siteOptimizing && s <= siteUnoptimizing }

// siteEvent is what changes the state of a site.
type siteEvent uint8

const (
	siteArm        siteEvent = iota // a probe wants to be hit
	siteDisarm                      // none does
	siteOptimize                    // a plan for a jump is begun
	siteUnoptimize                  // a plan for the way back is begun
	siteFinish                      // the plan has been carried out
	siteRevert                      // the plan is given up: a breakpoint is written at once
	siteRefuse                      // the rules refuse a probe of the new text
	siteReplace                     // the text has changed
	siteUnload                      // the text goes away
)

var siteEventNames = [...]string{
	"arm", "disarm", "optimize", "unoptimize", "finish", "revert", "refuse", "replace", "unload",
}

// String returns the event in a word.
func (e siteEvent) String() string { return siteEventNames[e] }

// transition is an event in a state.
type transition struct {
	state siteState
	event siteEvent
}

// transitions are all that there are; ARCHITECTURE.md shows them.
var transitions = map[transition]siteState{
	{siteDisarmed, siteArm}:         siteArmed,
	{siteDisarmed, siteRefuse}:      siteLost,
	{siteDisarmed, siteReplace}:     siteReplaced,
	{siteDisarmed, siteUnload}:      siteGone,
	{siteArmed, siteDisarm}:         siteDisarmed,
	{siteArmed, siteOptimize}:       siteOptimizing,
	{siteArmed, siteReplace}:        siteReplaced,
	{siteArmed, siteUnload}:         siteGone,
	{siteOptimizing, siteFinish}:    siteOptimized,
	{siteOptimizing, siteRevert}:    siteArmed,
	{siteOptimizing, siteReplace}:   siteReplaced,
	{siteOptimizing, siteUnload}:    siteGone,
	{siteOptimized, siteUnoptimize}: siteUnoptimizing,
	{siteOptimized, siteReplace}:    siteReplaced,
	{siteOptimized, siteUnload}:     siteGone,
	{siteUnoptimizing, siteFinish}:  siteArmed,
	{siteUnoptimizing, siteRevert}:  siteArmed,
	{siteUnoptimizing, siteReplace}: siteReplaced,
	{siteUnoptimizing, siteUnload}:  siteGone,
	{siteLost, siteReplace}:         siteReplaced,
	{siteLost, siteUnload}:          siteGone,
}

// on is the one place where the state of a site changes. An event that the state has no
// transition for is a mistake of the runtime's own.
func (s *site) on(event siteEvent) error {
	to, ok := transitions[transition{s.state, event}]
	if !ok {
		return fmt.Errorf("runtime: the site at %#x: %v in the state %v", s.addr, event, s.state)
	}
	s.state = to
	return nil
}
