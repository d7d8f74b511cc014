#include <stdarg.h>
#include "guest.h"

struct directive {
	long width;
	int precision; // negative where there is none
	unsigned left : 1, zero : 1, plus : 1, alternate : 1;
	int size; // of an integer, in bytes
};

static char *pad(char *out, char c, long n)
{
	while (n-- > 0)
		*out++ = c;
	return out;
}

static char *text(char *out, const struct directive *d, const char *s)
{
	long n = length(s);

	if (d->precision >= 0 && n > d->precision)
		n = d->precision;
	if (!d->left)
		out = pad(out, ' ', d->width - n);
	memmove(out, s, n);
	out += n;
	return d->left ? pad(out, ' ', d->width - n) : out;
}

static char *integer(char *out, const struct directive *d, uint64_t v, unsigned base, int negative, char letters)
{
	char digits[65], sign[3];
	int n = 0, signs = 0;

	do {
		unsigned digit = v % base;

		digits[n++] = digit < 10 ? '0' + digit : letters + digit - 10;
		v /= base;
	} while (v);
	while (n < d->precision && n < 64)
		digits[n++] = '0';
	if (negative)
		sign[signs++] = '-';
	else if (d->plus)
		sign[signs++] = '+';
	if (d->alternate && base == 16) {
		sign[signs++] = '0';
		sign[signs++] = letters + 'x' - 'a';
	}
	if (!d->left && !d->zero)
		out = pad(out, ' ', d->width - n - signs);
	for (int i = 0; i < signs; i++)
		*out++ = sign[i];
	if (!d->left && d->zero)
		out = pad(out, '0', d->width - n - signs);
	for (int i = n; i-- > 0;)
		*out++ = digits[i];
	return d->left ? pad(out, ' ', d->width - n - signs) : out;
}

static int64_t narrowed(int64_t v, int size)
{
	switch (size) {
	case 1: return (int8_t)v;
	case 2: return (int16_t)v;
	case 4: return (int32_t)v;
	}
	return v;
}

static uint64_t narrowed_unsigned(uint64_t v, int size)
{
	return size == 8 ? v : v & ((1ull << 8 * size) - 1);
}

long format(char *out, const char *pattern, ...)
{
	char *start = out;
	va_list args;

	va_start(args, pattern);
	for (; *pattern; pattern++) {
		struct directive d = { .precision = -1, .size = 4 };
		char one[2] = { 0, 0 };
		int64_t v;

		if (*pattern != '%') {
			*out++ = *pattern;
			continue;
		}
	next:
		switch (*++pattern) {
		case '-': d.left = 1; goto next;
		case '0': d.zero = 1; goto next;
		case '+': d.plus = 1; goto next;
		case '#': d.alternate = 1; goto next;
		case '1' ... '9':
			for (; *pattern >= '0' && *pattern <= '9'; pattern++)
				d.width = d.width * 10 + *pattern - '0';
			pattern--;
			goto next;
		case '*': d.width = va_arg(args, long); goto next;
		case '.':
			for (d.precision = 0; pattern[1] >= '0' && pattern[1] <= '9'; pattern++)
				d.precision = d.precision * 10 + pattern[1] - '0';
			goto next;
		case 'h': d.size /= 2; goto next;
		case 'l': d.size = 8; goto next;
		case 'd':
			v = narrowed(va_arg(args, long), d.size);
			out = integer(out, &d, v < 0 ? -(uint64_t)v : (uint64_t)v, 10, v < 0, 'a');
			break;
		case 'u':
			out = integer(out, &d, narrowed_unsigned(va_arg(args, long), d.size), 10, 0, 'a');
			break;
		case 'x':
			out = integer(out, &d, narrowed_unsigned(va_arg(args, long), d.size), 16, 0, 'a');
			break;
		case 'X':
			out = integer(out, &d, narrowed_unsigned(va_arg(args, long), d.size), 16, 0, 'A');
			break;
		case 'o':
			out = integer(out, &d, narrowed_unsigned(va_arg(args, long), d.size), 8, 0, 'a');
			break;
		case 'b':
			out = integer(out, &d, narrowed_unsigned(va_arg(args, long), d.size), 2, 0, 'a');
			break;
		case 'c':
			one[0] = va_arg(args, long);
			out = text(out, &d, one);
			break;
		case 's': out = text(out, &d, va_arg(args, const char *)); break;
		case '%': *out++ = '%'; break;
		default: *out++ = '?'; *out++ = *pattern; break;
		}
	}
	va_end(args);
	*out = 0;
	return out - start;
}
