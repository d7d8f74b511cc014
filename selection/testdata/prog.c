/* A program that has one function of its library's names and calls the other. */

int alpha(int);
int pick(int);

int beta(int x)
{
	return x + 8;
}

void _start(void)
{
	int n = beta(alpha(1)) + pick(2);
	__asm__ volatile("syscall" : : "a"(60), "D"(n) : "rcx", "r11", "memory");
}
