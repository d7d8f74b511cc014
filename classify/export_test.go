package classify

// For the tests.
var (
	WithKernelChecks = withKernelChecks
	WithOwnedText    = withOwnedText
)
