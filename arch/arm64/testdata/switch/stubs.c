/* What switch.c refers to. */
volatile int v;
#define F(n) int f##n(int x) { return x + n; }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
