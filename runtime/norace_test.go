//go:build !race && unicorn

package runtime_test

const raceDetector = false
