// Names that compilers make: of C++, of what they split off functions, of
// functions that are chosen when the program starts, and of inlined ones.

int over_int(int n) __asm__("_ZN2ns4overEi");
int over_double(double d) __asm__("_ZN2ns4overEd");
int over_cold(int n) __asm__("_ZN2ns4overEi.cold");
int filled(int n) __asm__("_ZN2ns4fillIiEET_S1_");
int imported(int n) __asm__("_ZN2ns8importedEi");
int sysinfo_part(int n) __asm__("do_sysinfo.isra.0");
int hook(int n) __asm__("NF_HOOK.constprop.0");

static inline __attribute__((always_inline)) int mixed(int n)
{
	n ^= n >> 3;
	n *= 0x2545f491;
	return n ^ n >> 7;
}

int over_int(int n) { return imported(n) + 1; }
int over_double(double d) { return mixed((int)d); }
int over_cold(int n) { return n - 1; }
int filled(int n) { return imported(n) + mixed(n + 1); }
int sysinfo_part(int n) { return n + 2; }
int hook(int n) { return n + 3; }

static int copy_plain(int n) { return n * 3; }
static int copy_wide(int n) { return n * 5; }
static int copy_unused(int n) { return n * 7; }

extern int features __attribute__((visibility("hidden")));
int features = 1;
int (*const unused)(int) = copy_unused;

static int (*choose_copy(void))(int) { return features & 2 ? copy_wide : copy_plain; }

int copy(int n) __attribute__((ifunc("choose_copy")));
