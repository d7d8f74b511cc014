// What return probes and jprobes are tested with.

typedef unsigned long word;

#define NOINLINE __attribute__((noinline, noclone, noipa))
#define MANY(x) x(a, 1) x(b, 2) x(c, 3) x(d, 5) x(e, 7) x(f, 11) x(g, 13) x(h, 17) x(i, 19) x(j, 23) x(k, 29) x(l, 31)

// Twelve arguments: some are on the stack on every ISA.
NOINLINE word many(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l)
{
	word sum = 0;
#define ADD(name, weight) sum = sum * 3 + name * weight;
	MANY(ADD)
	return sum;
}

word calls_many(word x)
{
	return many(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8, x + 9, x + 10, x + 11) ^ x;
}

volatile word seen;		// what the mirror of many would have returned
void (*volatile mirror_end)(void);	// null: the mirror returns by itself

// The mirror of many spoils its arguments, also those on the stack.
word mirror_many(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l)
{
	word sum = 0;
	MANY(ADD)
	seen = sum;
#define SPOIL(name, weight) *(volatile word *)&name = ~0UL / weight;
	MANY(SPOIL)
	if (mirror_end)
		mirror_end();
	return 0;
}

// The mirror of many that accesses memory that is not there.
word mirror_faults(word a)
{
	return *(volatile word *)(a & 1) + 1;
}

// Numbers that are in other registers than addresses.
NOINLINE double scale(double x, double y)
{
	return x * 4 + y;
}

word calls_scale(word x)
{
	return (word)scale((double)x, 3.0);
}

double mirror_scale(double x, double y)
{
	volatile double v = x + y;
	seen = (word)(v * 2);
	return (v + 1) * (v + 2) * (v + 3) * (v + 4) - v;
}

// A call in tail position is a jump.
NOINLINE word tail(word x)
{
	return x * 3;
}

NOINLINE __attribute__((optimize("optimize-sibling-calls"))) word head(word x)
{
	return tail(x + 1);
}

word calls_head(word x)
{
	return head(x) + 5;
}

// As deep as n.
NOINLINE word bottom(word x)
{
	return x + 7;
}

word descend(word n)
{
	return n == 0 ? bottom(n) : descend(n - 1) + 1;
}

NOINLINE word even(word n);

NOINLINE word odd(word n)
{
	return n == 0 ? bottom(0) : even(n - 1) + 1;
}

NOINLINE word even(word n)
{
	return n == 0 ? bottom(1) : odd(n - 1) + 2;
}

// Returns that skip callers, again and again at the same depth.
static void *place[5];

NOINLINE word leap(word depth)
{
	if (depth == 0)
		__builtin_longjmp(place, 1);
	return leap(depth - 1) + 1;
}

word leaps(word rounds, word depth)
{
	volatile word left = rounds, sum = 0;

	if (__builtin_setjmp(place))
		sum += tail(left);
	if (left == 0)
		return sum;
	left--;
	leap(depth);
	return 0;
}

void _start(void)
{
}
