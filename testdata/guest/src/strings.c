#include "guest.h"

struct word {
	uint64_t w;
} __attribute__((packed, may_alias));

void *memmove(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (t > f && t < f + n) {
		while (n-- > 0)
			t[n] = f[n];
		return to;
	}
	for (; n >= 8; n -= 8, t += 8, f += 8)
		*(struct word *)t = *(const struct word *)f;
	switch (n) {
	case 7: t[6] = f[6]; // fall through
	case 6: t[5] = f[5]; // fall through
	case 5: t[4] = f[4]; // fall through
	case 4: t[3] = f[3]; // fall through
	case 3: t[2] = f[2]; // fall through
	case 2: t[1] = f[1]; // fall through
	case 1: t[0] = f[0];
	}
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	return memmove(to, from, n);
}

void *memset(void *to, int c, size_t n)
{
	unsigned char *t = to;

	while (n-- > 0)
		*t++ = c;
	return to;
}

size_t length(const char *s)
{
	const char *p = s;

	while (*p)
		p++;
	return p - s;
}

int compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (unsigned char)*a - (unsigned char)*b;
}

long find(const char *text, const char *word)
{
	size_t n = length(word);

	for (const char *p = text; *p; p++) {
		size_t i = 0;

		while (i < n && p[i] == word[i])
			i++;
		if (i == n)
			return p - text;
	}
	return n == 0 ? 0 : -1;
}

long number(const char *s)
{
	long value = 0, base = 10, sign = 1;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s == '-' || *s == '+')
		sign = *s++ == '-' ? -1 : 1;
	if (s[0] == '0' && (s[1] | 32) == 'x')
		base = 16, s += 2;
	for (;; s++) {
		long digit;

		switch (*s) {
		case '0' ... '9':
			digit = *s - '0';
			break;
		case 'a' ... 'f':
		case 'A' ... 'F':
			digit = (*s | 32) - 'a' + 10;
			break;
		default:
			return sign * value;
		}
		if (digit >= base)
			return sign * value;
		value = value * base + digit;
	}
}
