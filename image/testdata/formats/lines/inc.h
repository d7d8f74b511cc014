static inline int square(int x) {
	return x * x;
}
int helper(int);
