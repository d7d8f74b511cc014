// Command goroutines keeps many goroutines and the garbage collector busy, with
// preemption by signals.
package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

type node struct {
	left, right *node
	key         int
	text        string
}

func (n *node) insert(key int) *node {
	switch {
	case n == nil:
		return &node{key: key, text: strings.Repeat("x", key%13)}
	case key < n.key:
		n.left = n.left.insert(key)
	case key > n.key:
		n.right = n.right.insert(key)
	}
	return n
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.left.sum() + n.right.sum() + n.key + len(n.text)
}

// spin has no calls, so that it is preempted by a signal only.
func spin(n int) (x uint64) {
	for i := range n {
		x = x*6364136223846793005 + uint64(i)
	}
	return x
}

func recovered(n int) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	var list []int
	return fmt.Sprint(list[n])
}

func main() {
	results := make(chan string)
	var group sync.WaitGroup
	for g := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			var root *node
			for i := range 5000 {
				root = root.insert((i * 7919) % 10007)
				if i%1000 == 0 {
					runtime.Gosched()
				}
			}
			h := fnv.New64a()
			fmt.Fprint(h, spin(3_000_000+g), root.sum())
			results <- fmt.Sprintf("%02d %x %s", g, h.Sum64(), recovered(g))
		}()
	}
	go func() {
		for range 20 {
			runtime.GC()
		}
	}()
	go func() {
		group.Wait()
		close(results)
	}()
	var lines []string
	for line := range results {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
	os.Exit(6)
}
