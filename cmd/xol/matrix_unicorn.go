//go:build unicorn

package main

import "xol/matrix"

func openMatrix() (matrixRunner, error) { return matrix.Run, nil }
