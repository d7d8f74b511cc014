// Functions that are only inlined: members, templates, namespaces.

extern "C" int taken(int);

namespace ns {
namespace {
__attribute__((always_inline)) inline int hidden(int n) { return taken(n + 1) ^ 1; }
}

struct shape {
	int size;
	__attribute__((always_inline)) int area(int n) const { return taken(size * n) + 2; }
};

template <typename T> __attribute__((always_inline)) inline T twice(T n) { return taken(n) * 2; }

// One name, two functions.
__attribute__((always_inline)) inline int over(int n) { return taken(n) + 7; }
__attribute__((always_inline)) inline int over(long n) { return taken(n) + 9; }
}

__attribute__((always_inline)) inline int outer(int n) { return ns::hidden(n) + taken(3); }

int first(int n) { return ns::hidden(n) + ns::twice(n); }
int second(const ns::shape *s, int n) { return s->area(n) + ns::twice((long)n); }
int third(int n) { return outer(n) + ns::over(n) + ns::over((long)n); }
