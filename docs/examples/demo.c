/* A program to try probes on. It adds up, chooses, and fills.
   gcc -O2 -g -fcf-protection -o demo demo.c */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long calls;

/* sum adds up the numbers from 1 to n. */
__attribute__((noinline)) long sum(long n)
{
	long s = 0;
	atomic_fetch_add(&calls, 1);
	for (long i = 1; i <= n; i++)
		s += i * i ^ n;
	return s;
}

/* pick does what the letter says. */
__attribute__((noinline)) long pick(int letter, long n)
{
	switch (letter) {
	case 'a': return n + 1;
	case 'b': return n * 3;
	case 'c': return sum(n);
	case 'd': return n - sum(n / 2);
	case 'e': return -n;
	case 'f': return n << 4;
	case 'g': return n % 1000;
	}
	return 0;
}

/* fill sets n numbers to v, four at a time. */
__attribute__((noinline, target("avx2"))) void fill(long *p, int n, long v)
{
	for (int i = 0; i < n; i++)
		p[i] = v;
}

int main(int argc, char **argv)
{
	long numbers[64];
	fill(numbers, 64, argc);
	for (int i = 0; i < 64; i++)
		numbers[i] = pick('a' + i % 8, i);
	printf("%ld\n", numbers[argc & 63]);
	return 0;
}
