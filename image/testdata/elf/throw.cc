// Exceptions of every kind: caught by type, caught all, cleaned up after, and
// calls with nothing to do. No headers, so that any target can compile it.
struct Guard {
	Guard();
	~Guard();
};
void may_throw(int);
int log(int);

int caught(int x) {
	try {
		may_throw(x);
		log(1);
		may_throw(x + 1);
	} catch (int i) {
		return log(i);
	} catch (...) {
		return -1;
	}
	return 0;
}

int cleaned(int x) {
	Guard outer;
	may_throw(x);
	{
		Guard inner;
		may_throw(x + 1);
	}
	return log(x);
}

int nothing_to_do(int x) {
	may_throw(x);
	return 1;
}

int nested(int x) {
	for (int i = 0; i < x; i++) {
		Guard g;
		try {
			may_throw(i);
		} catch (Guard *) {
			may_throw(-i);
		}
	}
	return x;
}

template <class T> T instance(T x) {
	Guard g;
	may_throw(x);
	return x;
}
template int instance(int);
template char instance(char);
