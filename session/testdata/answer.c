// A library.
int answer(void) { return 42; }
