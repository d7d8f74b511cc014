/* Switches and computed gotos, for build.sh. Every function that a case calls
   is another, so that no cases are merged. */

int f0(int), f1(int), f2(int), f3(int), f4(int), f5(int), f6(int), f7(int), f8(int), f9(int);
extern volatile int v;

#define CASES(x)                                                               \
	case 0: r = f0(x) * 3; break;                                          \
	case 1: r = f1(x) + 7; break;                                          \
	case 2: r = f2(x) - x; break;                                          \
	case 3: r = f3(x) ^ x; break;                                          \
	case 4: r = f4(x) / 5; break;                                          \
	case 5: r = f5(x) << 2; break;                                         \
	case 6: r = f6(x) & x; break;

int plain(unsigned x, int r)
{
	switch (x) { CASES(x) default: r = -1; }
	return r + v;
}

int from_minus_3(int x, int r)
{
	switch (x + 3) { CASES(x) case 8: r = f8(r); break; default: r++; }
	return r + v;
}

int of_long(long x, int r)
{
	switch (x) { CASES(x) case 9: r = f9(r); break; case 11: r = f1(f2(r)); break; default: r++; }
	return r + v;
}

int of_byte(const unsigned char *s, int r)
{
	switch (*s) {
	case 'a': r = f0(r); break;
	case 'b': r = f1(r); break;
	case 'd': r = f2(r); break;
	case 'e': r = f3(r); break;
	case 'h': r = f4(r); break;
	case 'k': r = f5(r) * 9; break;
	case 'z': r = f6(r); break;
	default: r = f7(r);
	}
	return r + v;
}

int masked(unsigned x, int r)
{
	switch (x & 7) {
		CASES(x)
	case 7: r = f7(x) | 5; break;
	}
	return r + v;
}

int exhaustive(unsigned x, int r)
{
	switch (x) { CASES(x) default: __builtin_unreachable(); }
	return r + v;
}

/* The tables' addresses are set in front of the loop. */
int in_loop(const int *p, int n, int r)
{
	while (n--) {
		int x = *p++;
		switch (x) { CASES(x) default: r = f9(r); }
		switch (r) { CASES(x) case 7: r = f8(r); break; }
	}
	return r + v;
}

/* More values live than there are registers, so that addresses are spilled. */
int spilled(const int *p, int n, int r)
{
	int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7], i = p[8], j = p[9],
	    k = p[10], l = p[11];
	while (n--) {
		int x = *p++;
		a += b ^ x, b += c, c ^= d, d += e, e ^= f, f += g, g ^= h, h += i, i ^= j, j += k, k ^= l, l += a;
		switch (x) { CASES(a) default: r = f9(b); }
		switch (l & 15) { CASES(c) case 8: r = f8(d); break; case 9: r = f9(e); break; }
	}
	return a + b + c + d + e + f + g + h + i + j + k + l + r;
}

#define BIG(n) case n: v = n; v = r + n; v = r - n; v = r * n; v = r ^ n; v = n + 1; r = f##n(r) + v * v + v; \
	v = n; v = r + n; v = r - n; v = r * n; v = r ^ n; v = n + 1; r = f##n(r) + v * v + v; \
	v = n; v = r + n; v = r - n; v = r * n; v = r ^ n; v = n + 1; r = f##n(r) + v * v + v; break;

/* Offsets do not fit a byte. */
int big_cases(unsigned x, int r)
{
	switch (x) { BIG(0) BIG(1) BIG(2) BIG(3) BIG(4) BIG(5) BIG(6) BIG(7) BIG(8) BIG(9) default: r = 4; }
	return r + v;
}

/* The index comes from one of two places, each with its own comparison. */
int two_ways(unsigned x, unsigned y, int r)
{
	if (v) {
		if (x > 6)
			return r;
	} else {
		x = y;
		if (x > 5)
			return f9(r);
	}
	switch (x) { CASES(r) default: __builtin_unreachable(); }
	return r + v;
}

int tail(unsigned x, int r)
{
	switch (x) {
	case 0: return f3(r);
	case 1: return f0(r);
	case 2: return f4(r);
	case 3: return f1(r);
	case 4: return f6(r);
	case 5: return f2(r);
	case 6: return f5(r);
	}
	return f9(r);
}

int interpreter(const unsigned char *p, int r)
{
	static const void *const ops[] = { &&op0, &&op1, &&op2, &&op3, &&op4, &&end };
	goto *ops[*p++];
op0:	r = f0(r); goto *ops[*p++];
op1:	r = f1(r) + 1; goto *ops[*p++];
op2:	r = f2(r) * 2; goto *ops[*p++];
op3:	r = f3(r) - 3; goto *ops[*p++];
op4:	r = f4(r) / 4; goto *ops[*p++];
end:	return r;
}

/* Labels relative to another, as in the C library's vfprintf. */
int relative_labels(unsigned x, int r)
{
	static const int ops[] = { &&op0 - &&base, &&op1 - &&base, &&op2 - &&base, &&op3 - &&base };
base:
	goto *(&&base + ops[x & 3]);
op0:	r = f0(r);
op1:	r = f1(r) + 1;
op2:	r = f2(r) * 2;
op3:	x = f3(r) - 3;
	if (x & 8) goto base;
	return x;
}

/* No tables: pointers. */
int (*pointer)(int);
int (*const pointers[])(int) = { f0, f1, f2, f3, f4 };

int by_pointer(int r) { return pointer(r); }
int by_argument(int (*f)(int), int r) { return f(r); }
int by_table_of_functions(unsigned x, int r) { return pointers[x](r); }
int by_choice(int x) { return (x ? f0 : f1)(x); }
