#include "../inc.h"

int helper(int x) {
	if (x == 77)
		return square(x + 1);
	return square(x) / 3;
}

int unused(int x) {
	return square(x) * 5;
}
