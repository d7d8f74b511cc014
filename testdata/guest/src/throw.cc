// A program of its own for the host's C++ library: exceptions that pass frames
// with destructors, are caught by type, by base class and by anything, and thrown
// again.

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static int depth;

struct Guard {
	Guard() { depth++; }
	~Guard() { depth--; }
};

struct Failure : std::runtime_error {
	int code;
	Failure(int c) : std::runtime_error("failure " + std::to_string(c)), code(c) {}
};

__attribute__((noinline)) static int raise(int kind)
{
	Guard g;

	switch (kind % 6) {
	case 0: throw Failure(kind);
	case 1: throw kind;
	case 2: throw std::out_of_range("range");
	case 3: throw std::string("text");
	case 4: return std::vector<int>(3).at(kind);
	}
	return kind;
}

__attribute__((noinline)) static int pass(int kind, int levels)
{
	Guard g;

	if (levels > 0)
		return pass(kind, levels - 1) + 1;
	try {
		return raise(kind);
	} catch (const std::string &) {
		throw Failure(-kind);
	} catch (int) {
		throw;
	}
}

__attribute__((noinline)) static int caught(int kind)
{
	try {
		return pass(kind, kind % 3);
	} catch (const Failure &f) {
		return f.code * 2;
	} catch (const std::exception &e) {
		return e.what()[0];
	} catch (...) {
		return -1;
	}
}

// With an argument it goes on for ever.
int main(int argc, char **)
{
	unsigned long sum = 0;

	for (int kind = 0; argc > 1 || kind < 30; kind = (kind + 1) % 1000)
		sum = sum * 7 + caught(kind);
	std::printf("%lu %d\n", sum, depth);
	return depth != 0;
}
