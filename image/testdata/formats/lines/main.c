#include "inc.h"

static int sum(const int *v, int n) {
	int s = 0;
	for (int i = 0; i < n; i++)
		s += square(v[i]);
	return s;
}

void _start(void) {
	int v[4] = {3, 1, 2, 7};
	volatile int result = sum(v, 4);
	result = helper(result);
	for (;;)
		;
}
