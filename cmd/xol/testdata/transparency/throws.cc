// Exceptions through many frames, with destructors, rethrown, and of several types.

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static int alive, most;

struct Guard {
	std::string name;
	explicit Guard(int n) : name("guard " + std::to_string(n))
	{
		most = ++alive > most ? alive : most;
	}
	~Guard() { alive--; }
};

static int depth(int n, int kind)
{
	Guard g(n);
	std::vector<std::unique_ptr<Guard>> more;
	more.push_back(std::make_unique<Guard>(-n));
	if (n > 0) {
		try {
			return depth(n - 1, kind) + (int)g.name.size();
		} catch (const std::out_of_range &) {
			if (n % 3 == 0)
				throw std::runtime_error("from " + g.name);
			throw;
		}
	}
	switch (kind) {
	case 0:
		throw std::out_of_range("zero");
	case 1:
		throw 42;
	case 2:
		return (int)std::string("abc").at(7);
	case 3:
		return std::stoi("none");
	}
	return 1;
}

static std::string run(int kind)
{
	try {
		return std::to_string(depth(20, kind));
	} catch (const std::exception &e) {
		return e.what();
	} catch (int n) {
		return "int " + std::to_string(n);
	}
}

int main()
{
	for (int round = 0; round < 50; round++)
		for (int kind = 0; kind < 5; kind++) {
			std::string said = run(kind);
			if (round == 0)
				std::printf("%d: %s\n", kind, said.c_str());
		}
	std::printf("alive %d of %d\n", alive, most);
	std::fflush(stdout);
	throw std::logic_error("nobody catches this");
}
