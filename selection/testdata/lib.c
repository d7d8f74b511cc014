/* A library with what places name: functions, versions, an IFUNC, a name of C++. */

int alpha(int x) { return x + 1; }
int beta(int x) { return x + 2; }

int copy_v1(int x) { return x + 3; }
int copy_v2(int x) { return x + 4; }
__asm__(".symver copy_v1, copy@V1");
__asm__(".symver copy_v2, copy@@V2");

static int pick_plain(int x) { return x + 5; }
static int pick_fast(int x) { return x + 6; }
static volatile int has_fast;
static int (*choose(void))(int) { return has_fast ? pick_fast : pick_plain; }
int pick(int) __attribute__((ifunc("choose")));

int gamma_of(int x) __asm__("_ZN2ns5gammaEi");
int gamma_of(int x) { return x + 7; }
