// It calls itself as deep as it is told.
#include <stdlib.h>

__attribute__((noinline)) int deep(volatile int n) { return n <= 1 ? 1 : deep(n - 1) + 1; }

int main(int argc, char **argv) { return deep(atoi(argv[1])) != atoi(argv[1]); }
