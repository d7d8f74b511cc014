#include "guest.h"

static void swap(char *a, char *b, size_t width)
{
	while (width-- > 0) {
		char c = a[width];

		a[width] = b[width];
		b[width] = c;
	}
}

void quick_sort(void *base, size_t n, size_t width, order before)
{
	char *p = base;
	size_t store = 0;

	if (n < 2)
		return;
	swap(p + n / 2 * width, p + (n - 1) * width, width);
	for (size_t i = 0; i < n - 1; i++)
		if (before(p + i * width, p + (n - 1) * width) < 0)
			swap(p + i * width, p + store++ * width, width);
	swap(p + store * width, p + (n - 1) * width, width);
	quick_sort(p, store, width, before);
	quick_sort(p + (store + 1) * width, n - store - 1, width, before);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void sort_words(int64_t *words, size_t n)
{
	quick_sort(words, n, sizeof(*words), by_value);
}

static void sift(int64_t *words, size_t root, size_t n)
{
	for (;;) {
		size_t child = 2 * root + 1;
		int64_t w;

		if (child >= n)
			return;
		if (child + 1 < n && words[child] < words[child + 1])
			child++;
		if (words[root] >= words[child])
			return;
		w = words[root];
		words[root] = words[child];
		words[child] = w;
		root = child;
	}
}

void heap_sort(int64_t *words, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift(words, i, n);
	while (n > 1) {
		int64_t w = words[--n];

		words[n] = words[0];
		words[0] = w;
		sift(words, 0, n);
	}
}
