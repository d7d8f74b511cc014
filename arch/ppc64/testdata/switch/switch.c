/* Functions with indirect jumps of every kind that compilers make. Each case
 * does something of its own, so that none are merged into tables of values. */
extern int f0(int), f1(int), f2(int), f3(int), f4(int), g(void);
extern char *name(int);

#define CASES(a) \
	case a: return f0(1); \
	case a + 1: return f1(2); \
	case a + 2: return f2(3); \
	case a + 3: return f3(4); \
	case a + 4: return f4(9); \
	case a + 5: return f1(77)

int from_zero(unsigned x)
{
	switch (x) { CASES(0); case 7: return f2(55); default: return -1; }
}

int from_ten(int x)
{
	switch (x) { CASES(10); case 17: return f2(55); default: return -1; }
}

int from_negative(int x)
{
	switch (x) { CASES(-3); case 4: return f2(55); default: return -1; }
}

int masked(unsigned x)
{
	switch (x & 7) { CASES(0); case 6: return f3(6); case 7: return f2(55); }
	return 0;
}

int shifted(unsigned x)
{
	switch (x >> 29) { CASES(0); case 6: return f3(6); case 7: return f2(55); }
	return 0;
}

int of_long(unsigned long x)
{
	switch (x) { CASES(0); case 7: return f2(55); default: return -1; }
}

int of_char(signed char x)
{
	switch (x) { CASES('a'); case 'h': return f2(55); default: return -1; }
}

int of_short(const unsigned short *x)
{
	switch (*x) { CASES(500); case 507: return f2(55); default: return -1; }
}

int never_else(unsigned x)
{
	switch (x) { CASES(0); default: __builtin_unreachable(); }
}

int in_loop(const unsigned char *p, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		switch (p[i]) {
		case 0: s += f0(1); break;
		case 1: s += f1(2); break;
		case 2: s += f2(3); break;
		case 3: s -= f3(4); break;
		case 4: s ^= f4(9); break;
		case 5: s += f1(77); break;
		case 7: return f2(55);
		default: s += g();
		}
	return s;
}

int nested(int x, int y)
{
	switch (x) {
	case 0:
		switch (y) { CASES(20); default: return g(); }
	case 1: return f1(2);
	case 2: return f2(3);
	case 3: return f3(4);
	case 4: return f4(9);
	case 5:
		switch (y) { CASES(40); default: return f0(g()); }
	default: return -1;
	}
}

int machine(const char *p)
{
	int state = 0;
	for (;; p++)
		switch (state) {
		case 0: state = *p == 'a' ? 1 : 3; f0(1); break;
		case 1: state = *p == 'b' ? 2 : 4; f1(1); break;
		case 2: state = f2(*p); break;
		case 3: state = 5; f3(2); break;
		case 4: state = *p ? 6 : 0; break;
		case 5: state = f4(*p); break;
		case 6: return f0(8);
		}
}

int labels(const unsigned char *p)
{
	static const void *const l[] = { &&a, &&b, &&c, &&d };
	int s = 0;
	goto *l[*p++];
a:	s += f0(s);
	goto *l[*p++];
b:	s -= f1(s);
	goto *l[*p++];
c:	s ^= f2(s);
	goto *l[*p++];
d:	return s;
}

int distances(const unsigned char *p)
{
	static const int l[] = { &&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a };
	int s = 0;
	goto *(&&a + l[*p++]);
a:	s += f0(s);
	goto *(&&a + l[*p++]);
b:	s -= f1(s);
	goto *(&&a + l[*p++]);
c:	s ^= f2(s);
	goto *(&&a + l[*p++]);
d:	return s;
}

int pressed(int x, int a, int b, int c, int d, int e, int f, int h)
{
	int s = 0;
	for (int i = a; i < b; i++) {
		int k = f0(i), l = f1(i), m = f2(i), n = f3(i), o = f4(i);
		int q = f0(k), r = f1(l), t = f2(m), u = f3(n), v = f4(o);
		switch (x + i) {
		case 0: s += f0(k + q + c); break;
		case 1: s += f1(l + r + d); break;
		case 2: s += f2(m + t + e); break;
		case 3: s += f3(n + u + f); break;
		case 4: s += f4(o + v + h); break;
		case 5: s += f4(k + l + m + n + o); break;
		case 6: s += f1(q + r + t + u + v); break;
		}
	}
	return s;
}

int tail(int (*f)(int)) { return f(3); }

struct object { int (**methods)(int); };

int method(struct object *o) { return o->methods[3](7); }

int (*handler)(int);

int by_variable(void) { return handler(4); }

static int (*const handlers[])(int) = { f0, f1, f2, f3, f4 };

int by_index(unsigned x) { return handlers[x % 5](6); }
