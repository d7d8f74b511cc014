// A program of small tools that the first argument chooses between, as busybox is.
// It needs no library, only the system calls write, brk, mmap and exit. What a tool
// keeps is in its own memory, so that several tasks may run at a time.

#include "tools.h"

void *switch_stack(void **from, void *to, void *value);
void *first_stack(void *top, void (*f)(void *));
long calls_further(long x);
long calls_elsewhere(long x);

void *memset(void *to, int c, word n)
{
	for (char *p = to; n-- > 0;)
		*p++ = c;
	return to;
}

void *memcpy(void *to, const void *from, word n)
{
	char *t = to;

	for (const char *f = from; n-- > 0;)
		*t++ = *f++;
	return to;
}

static NOINLINE int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static NOINLINE word number(const char *s)
{
	word n = 0;

	while (*s >= '0' && *s <= '9')
		n = n * 10 + *s++ - '0';
	return n;
}

// Output goes through a small buffer.
struct out {
	int n;
	char bytes[48];
};

static NOINLINE void flush(struct out *o)
{
	const char *p = o->bytes;

	while (o->n > 0) {
		long n = call(WRITE, 1, (long)p, o->n, 0, 0, 0);

		if (n < 0)
			call(EXIT, 99, 0, 0, 0, 0, 0);
		p += n;
		o->n -= n;
	}
}

static NOINLINE void put(struct out *o, char c)
{
	o->bytes[o->n++] = c;
	if (o->n == sizeof(o->bytes))
		flush(o);
}

static NOINLINE void text(struct out *o, const char *s)
{
	while (*s)
		put(o, *s++);
}

static NOINLINE void decimal(struct out *o, word n)
{
	if (n >= 10)
		decimal(o, n / 10);
	put(o, '0' + n % 10);
}

static word next_random(word *state)
{
	*state = *state * 6364136223846793005UL + 1442695040888963407UL;
	return *state >> 33;
}

// Memory from the system: by brk, which only one task may use, and by mmap.
static word top;

static NOINLINE void *more(word size)
{
	word old = top ? top : (word)call(BRK, 0, 0, 0, 0, 0, 0);

	size = (size + 15) & -16UL;
	if ((word)call(BRK, old + size, 0, 0, 0, 0, 0) != old + size)
		call(EXIT, 98, 0, 0, 0, 0, 0);
	top = old + size;
	return (void *)old;
}

static NOINLINE void *map(word size, long flags)
{
	long p = call(MMAP, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p < 0 && p > -4096)
		call(EXIT, 97, 0, 0, 0, 0, 0);
	return (void *)p;
}

// sort N: sorts a list of N lines by merging.
struct line {
	struct line *next;
	char text[12];
};

static NOINLINE int before(const struct line *a, const struct line *b)
{
	for (int i = 0; i < 12; i++)
		if (a->text[i] != b->text[i])
			return a->text[i] < b->text[i];
	return 0;
}

static NOINLINE struct line *merge(struct line *a, struct line *b)
{
	struct line *first, **end = &first;

	while (a && b) {
		struct line **least = before(b, a) ? &b : &a;

		*end = *least;
		end = &(*end)->next;
		*least = *end;
	}
	*end = a ? a : b;
	return first;
}

static NOINLINE struct line *sorted(struct line *list, word n)
{
	struct line *half = list, *end = 0;

	if (n < 2)
		return list;
	for (word i = 0; i < n / 2; i++) {
		end = half;
		half = half->next;
	}
	end->next = 0;
	list = sorted(list, n / 2);
	return merge(list, sorted(half, n - n / 2));
}

static NOINLINE int sort(struct out *o, word n)
{
	struct line *list = 0;
	word state = n;
	int lines = 0;

	for (word i = 0; i < n; i++) {
		struct line *l = more(sizeof(*l));

		for (int k = 0; k < 11; k++)
			l->text[k] = 'a' + next_random(&state) % 26;
		l->text[11] = 0;
		l->next = list;
		list = l;
	}
	for (list = sorted(list, n); list; list = list->next, lines++) {
		text(o, list->text);
		put(o, '\n');
	}
	return lines & 127;
}

// sieve N: counts the primes up to N.
static NOINLINE int sieve(struct out *o, word n)
{
	unsigned char *gone = map(n + 1, 0);
	word count = 0;

	for (word i = 2; i <= n; i++) {
		if (gone[i])
			continue;
		count++;
		for (word k = i * i; k <= n; k += i)
			gone[k] = 1;
	}
	decimal(o, count);
	put(o, '\n');
	return count & 127;
}

// scatter N: adds up words of memory that is touched here and there.
static NOINLINE int scatter(struct out *o, word n)
{
	enum { WORDS = 1 << 15 };
	word *memory = map(WORDS * sizeof(word), 0), state = n, sum = 0;

	for (word i = 0; i < n; i++)
		memory[next_random(&state) % WORDS] += i;
	for (word i = 0; i < WORDS; i += 61)
		sum = sum * 31 + memory[i];
	decimal(o, sum);
	put(o, '\n');
	return sum & 127;
}

// walk N: a coroutine walks a tree of N nodes, and hands out one at a time. Another
// one adds up what it is handed.
struct walker {
	void *own, *caller;	// stacks
	word nodes, given;
};

static NOINLINE void hand_out(struct walker *w, word node)
{
	w->given = node;
	switch_stack(&w->own, w->caller, w);
}

static NOINLINE word visit(struct walker *w, word node)
{
	word depth;

	if (node > w->nodes)
		return 0;
	depth = visit(w, 2 * node);
	hand_out(w, node);
	return depth + visit(w, 2 * node + 1) + 1;
}

static void walk_all(void *arg)
{
	struct walker *w = arg;

	for (;;) {
		word visited = visit(w, 1);

		hand_out(w, visited << 32);
	}
}

static NOINLINE word resume(struct walker *w)
{
	switch_stack(&w->caller, w->own, w);
	return w->given;
}

static NOINLINE word add_up(struct walker *w, word depth)
{
	word given = resume(w);

	if (given >> 32)
		return given;
	return add_up(w, depth + 1) + given;
}

enum { STACK = 16 << 10 };

static NOINLINE int walk(struct out *o, word n)
{
	struct walker *w = map(4096, 0);
	char *stacks = map(2 * STACK, MAP_STACK);
	word sum = 0;

	for (int i = 0; i < 2; i++) {
		w[i].nodes = n + i;
		w[i].own = first_stack(stacks + (i + 1) * STACK, walk_all);
	}
	for (int i = 0; i < 4; i++)
		sum = sum * 3 + add_up(&w[i & 1], 0);
	decimal(o, sum);
	put(o, '\n');
	return sum & 127;
}

// leap N: leaves N calls in a coroutine at once, again and again, while others wait.
static NOINLINE word dig(void **place, struct walker *w, word depth)
{
	if (depth == 0) {
		resume(w);
		__builtin_longjmp(place, 1);
	}
	return dig(place, w, depth - 1) + 1;
}

static NOINLINE void dig_and_leap(struct walker *w, word depth)
{
	void *place[5];

	if (!__builtin_setjmp(place))
		dig(place, w, depth);
}

static NOINLINE int leap(struct out *o, word n)
{
	struct walker *w = map(4096, 0);
	char *stacks = map(STACK, MAP_STACK);
	word sum = 0;

	w->nodes = 9;
	w->own = first_stack(stacks + STACK, walk_all);
	for (word i = 0; i < 25; i++) {
		dig_and_leap(w, i % (n + 1));
		sum = sum * 3 + w->given;
	}
	decimal(o, sum);
	put(o, '\n');
	return sum & 127;
}

// further N: calls functions that change where they return to.
static NOINLINE int further(struct out *o, word n)
{
	word sum = 0;

	for (word i = 0; i < n; i++)
		sum = sum * 3 + calls_further(i) + calls_elsewhere(i);
	decimal(o, sum);
	put(o, '\n');
	return sum & 127;
}

static NOINLINE int run(struct out *o, const char *tool, word n)
{
	if (same(tool, "sort"))
		return sort(o, n);
	if (same(tool, "sieve"))
		return sieve(o, n);
	if (same(tool, "scatter"))
		return scatter(o, n);
	if (same(tool, "walk"))
		return walk(o, n);
	if (same(tool, "leap"))
		return leap(o, n);
	if (same(tool, "further"))
		return further(o, n);
	text(o, "no such tool: ");
	text(o, tool);
	put(o, '\n');
	return 127;
}

// What the kernel leaves on the stack is the number of arguments, then they.
void begin(word *stack)
{
	struct out o;
	int status = 0;

	o.n = 0;
	for (word i = 1; i + 1 < stack[0]; i += 2)
		status = (status * 3 + run(&o, (const char *)stack[1 + i], number((const char *)stack[2 + i]))) & 127;
	flush(&o);
	call(EXIT, status, 0, 0, 0, 0, 0);
}
