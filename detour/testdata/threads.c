/*
 * Threads call a function that counts and takes the time, from a signal handler as
 * well. Prints how many calls there were, what was counted, the times in the
 * histogram, those that were missed, and the entries that are left in the table.
 *
 * threads CODE ADDRESS FUNCTION COUNTER HISTOGRAM TABLE ENTRIES THREADS ROUNDS DEPTH
 * The code is put at the address; all other addresses are offsets from it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#define SIZE 0x100000

static long (*function)(long);
static long rounds, depth, in_handlers;

static void handler(int number)
{
	(void)number;
	function(3);
	__atomic_fetch_add(&in_handlers, 4, __ATOMIC_RELAXED);
}

static void *thread(void *first)
{
	for (long i = 0; i < rounds; i++)
		function((i * 101 + (long)first) % depth);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 11)
		return 2;
	long n[11];
	for (int i = 2; i < argc; i++)
		n[i] = strtol(argv[i], NULL, 0);
	char *memory = mmap((void *)n[2], SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	FILE *code = fopen(argv[1], "r");
	if (memory != (char *)n[2] || !code || !fread(memory, 1, SIZE, code))
		return 1;
	function = (long (*)(long))(memory + n[3]);
	rounds = n[9];
	depth = n[10];

	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_t threads[64];
	for (long i = 0; i < n[8]; i++)
		pthread_create(&threads[i], NULL, thread, (void *)i);
	for (long i = 0; i < n[8]; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);

	long calls = in_handlers;
	for (long t = 0; t < n[8]; t++)
		for (long i = 0; i < rounds; i++)
			calls += (i * 101 + t) % depth + 1;
	uint64_t *histogram = (uint64_t *)(memory + n[5]), times = 0, left = 0;
	for (int i = 0; i < 64; i++)
		times += histogram[i];
	for (long i = 0; i < n[7]; i++)
		left += *(uint64_t *)(memory + n[6] + 32 * i) != 0;
	printf("%ld %lu %lu %lu %lu\n", calls, *(uint64_t *)(memory + n[4]), times, histogram[64], left);
	return 0;
}
