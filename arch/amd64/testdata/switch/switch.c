/* Switches of several kinds, for which compilers make jump tables. */

extern int effect(int);
extern int other(int, int);

int dense(int x)
{
	switch (x) {
	case 0: return effect(11);
	case 1: return effect(3) + 1;
	case 2: return effect(77) * 2;
	case 3: return other(x, 4);
	case 4: return effect(2) - effect(1);
	case 5: return other(5, 5);
	}
	return -1;
}

int shifted(long x)
{
	switch (x) {
	case 97: return effect(11);
	case 98: return effect(3) + 1;
	case 100: return effect(77) * 2;
	case 101: return other(7, 4);
	case 102: return effect(2) - effect(1);
	case 105: return other(5, 5);
	case 107: return other(5, 6);
	}
	return effect(0);
}

int characters(const char *s)
{
	int n = 0;

	for (; *s; s++) {
		switch (*s) {
		case 'a': n += effect(1); break;
		case 'b': n += other(2, n); break;
		case 'c': n -= effect(3); break;
		case 'e': n *= effect(4); break;
		case 'f': n ^= effect(5); break;
		case 'h': n = other(6, 6); continue;
		case 'z': return n;
		default: n++;
		}
		n += effect(n);
	}
	return n;
}

/* Without a comparison: the index is masked. */
int masked(unsigned x)
{
	switch (x & 7) {
	case 0: return effect(11);
	case 1: return effect(3) + 1;
	case 2: return effect(77) * 2;
	case 3: return other(2, 4);
	case 4: return effect(2) - effect(1);
	case 5: return other(5, 5);
	case 6: return other(5, 9);
	case 7: return effect(9) ^ 1;
	}
	return 0;
}

/* Without a bound: the compiler is told that there are no other values. */
int unbounded(unsigned x)
{
	switch (x) {
	case 0: return effect(11);
	case 1: return effect(3) + 1;
	case 2: return effect(77) * 2;
	case 3: return other(2, 4);
	case 4: return effect(2) - effect(1);
	case 5: return other(5, 5);
	}
	__builtin_unreachable();
}

struct command {
	unsigned char code, flags;
	short count;
	int operand;
	long wide;
};

int bytes(const struct command *c, int n)
{
	int sum = 0;

	while (n--) {
		switch (c->code) {
		case 1: sum += effect(c->operand); break;
		case 2: sum -= effect(c->operand); break;
		case 3: sum *= c->operand; break;
		case 4: sum = other(sum, c->operand); break;
		case 5: sum = other(c->operand, sum); break;
		case 6: c += sum; break;
		case 9: return sum;
		}
		switch (c->count) {
		case -2: sum += 7; break;
		case -1: sum = effect(sum); break;
		case 0: sum ^= effect(9); break;
		case 1: sum = other(1, sum); break;
		case 2: sum = other(2, sum); break;
		case 3: sum = other(sum, sum); break;
		}
		switch (c->wide) {
		case 1000: sum += 70; break;
		case 1001: sum = effect(-sum); break;
		case 1002: sum ^= effect(90); break;
		case 1003: sum = other(10, sum); break;
		case 1005: sum = other(20, sum); break;
		}
		c++;
	}
	return sum;
}

/* Few registers are left: some have to be kept on the stack. */
int crowded(int *a, int *b, int *c, int *d, int n)
{
	int u = 1, v = 2, w = 3, x = 4, y = 5, z = 6, i;

	for (i = 0; i < n; i++) {
		u += a[i]; v ^= b[i]; w -= c[i]; x += d[i] * u; y ^= v; z += w;
		switch (a[v & 15]) {
		case 1: u = other(v, w); break;
		case 2: v = other(w, x); break;
		case 3: w = other(x, y); break;
		case 4: x = other(y, z); break;
		case 5: y = other(z, u); break;
		case 6: z = other(u, v); break;
		case 7: u ^= z; v ^= u; break;
		}
		switch (b[w & 15] + x) {
		case 11: u = effect(u + v); break;
		case 12: v = effect(v + w); break;
		case 13: w = effect(w + x); break;
		case 14: x = effect(x + y); break;
		case 16: y = effect(y + z); break;
		case 17: z = effect(z + u); break;
		}
	}
	return u + v * 3 + w * 5 + x * 7 + y * 11 + z * 13;
}

/* A switch in a branch of another, reached from two places. */
int nested(int x, int y)
{
	if (x > 40)
		goto second;
	switch (x) {
	case 10: return effect(1);
	case 11: y = effect(2); break;
	case 12: y = effect(3); break;
	case 13: return other(4, y);
	case 14: y = other(y, x); break;
	case 15: return 0;
	default: return -1;
	}
second:
	switch (y) {
	case 0: return effect(x);
	case 1: return other(x, x) + 1;
	case 2: return other(x, 9);
	case 3: return effect(x + 1) * 5;
	case 4: return effect(y);
	case 5: return other(y, x);
	case 6: return other(7, y);
	}
	return y;
}

/* An interpreter: the labels' addresses are in a table. */
int threaded(const unsigned char *code, int acc)
{
	static const void *const labels[] = { &&stop, &&inc, &&dec, &&dbl, &&call };

	goto *labels[*code++];
inc:
	acc++;
	goto *labels[*code++];
dec:
	acc--;
	goto *labels[*code++];
dbl:
	acc = effect(acc + acc);
	goto *labels[*code++];
call:
	acc = other(acc, 1);
	goto *labels[*code++];
stop:
	return acc;
}

/* No tables, but pointers. */
int tail(int (**f)(int), int i) { return f[i](i); }

int tailtable(int i)
{
	static int (*const table[])(int) = { effect, dense, effect };

	return table[i](i);
}
