//go:build race && unicorn

package runtime_test

// raceDetector says that tests are built with the race detector, which takes memory of
// its own.
const raceDetector = true
