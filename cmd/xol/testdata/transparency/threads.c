/* Threads that share a counter and a queue, with a signal 1,000 times per second. */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { THREADS = 8, ROUNDS = 60000, SLOTS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, work = PTHREAD_COND_INITIALIZER;
static unsigned queue[SLOTS], head, tail;
static uint64_t sum, taken;
static volatile sig_atomic_t ticks;
static _Thread_local uint64_t hash = 14695981039346656037u;

static void tick(int number)
{
	char text[32];
	(void)number;
	snprintf(text, sizeof text, "%d", (int)ticks); /* what handlers do though they should not */
	ticks = ticks + 1;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	return x;
}

static void *produce(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (head - tail == SLOTS)
			pthread_cond_wait(&room, &lock);
		queue[head++ % SLOTS] = id * ROUNDS + i;
		pthread_cond_signal(&work);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return (x > y) - (x < y);
}

static void *consume(void *arg)
{
	unsigned batch[32];
	(void)arg;
	for (;;) {
		int n = 0;
		pthread_mutex_lock(&lock);
		while (head == tail && taken < THREADS / 2 * ROUNDS)
			pthread_cond_wait(&work, &lock);
		while (head != tail && n < 32)
			batch[n++] = queue[tail++ % SLOTS];
		taken += n;
		if (taken == THREADS / 2 * ROUNDS)
			pthread_cond_broadcast(&work);
		pthread_cond_broadcast(&room);
		pthread_mutex_unlock(&lock);
		if (n == 0)
			return NULL;
		qsort(batch, n, sizeof batch[0], compare);
		for (int i = 0; i < n; i++) {
			char *text = malloc(24);
			snprintf(text, 24, "%u", batch[i]);
			hash ^= strlen(text);
			__atomic_fetch_add(&sum, mix(strtoul(text, NULL, 10)), __ATOMIC_RELAXED);
			free(text);
		}
	}
}

int main(void)
{
	pthread_t threads[THREADS];
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 1000}, {0, 1000}};
	uint64_t want = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, i % 2 ? consume : produce, (void *)(i / 2));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (unsigned i = 0; i < THREADS / 2 * ROUNDS; i++)
		want += mix(i);
	printf("%llu %llu %s\n", (unsigned long long)taken, (unsigned long long)sum, sum == want && ticks > 0 ? "right" : "wrong");
	return sum == want ? 5 : 1;
}
