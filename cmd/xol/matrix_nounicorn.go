//go:build !unicorn

package main

func openMatrix() (matrixRunner, error) { return nil, errNoUnicorn }
