/* What switch.c calls, so that the compiler cannot look into it. */

int effect(int x) { return x; }
int other(int x, int y) { return x - y; }
