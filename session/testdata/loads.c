// Loads the libraries that it is told of, calls a function of each, and unloads each
// but the last again.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW);
		int (*answer)(void) = lib ? (int (*)(void))dlsym(lib, "answer") : 0;
		if (!answer || answer() != 42) {
			puts(dlerror());
			return 1;
		}
		if (i + 1 < argc)
			dlclose(lib);
	}
	return 0;
}
