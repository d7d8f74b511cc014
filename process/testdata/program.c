// What the tests of package process trace. The first argument says what it does; it prints
// what the test compares, and "ready" where the test waits for that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

// hot starts with a one-byte instruction, whose place a breakpoint takes.
__attribute__((noinline, naked)) long hot(long x)
{
	__asm__("nop; lea 1(%rdi), %rax; ret");
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void check(int wrong, const char *what)
{
	if (wrong) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void handle(int sig, void (*f)(int, siginfo_t *, void *))
{
	struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | SA_RESTART};
	check(sigaction(sig, &a, NULL), "sigaction");
}

// busy: threads that count under a mutex, with a timer signal 1,000 times per second.
static atomic_long ticks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared, rounds;

static void tick(int sig, siginfo_t *info, void *context) { atomic_fetch_add(&ticks, 1); }

static void *count(void *arg)
{
	long own = 0;
	for (long i = 0; i < rounds; i++) {
		own = hot(own);
		if (i % 64 == 0) {
			pthread_mutex_lock(&lock);
			shared++;
			pthread_mutex_unlock(&lock);
		}
	}
	return (void *)own;
}

static void timer(void)
{
	handle(SIGALRM, tick);
	struct itimerval every = {{0, 1000}, {0, 1000}};
	check(setitimer(ITIMER_REAL, &every, NULL), "setitimer");
}

static int busy(int threads)
{
	pthread_t th[64];
	long sum = 0;
	timer();
	ready();
	for (int i = 0; i < threads; i++)
		pthread_create(&th[i], NULL, count, NULL);
	for (int i = 0; i < threads; i++) {
		void *own;
		pthread_join(th[i], &own);
		sum += (long)own;
	}
	while (!ticks)
		usleep(100);
	printf("%ld %ld ticked\n", sum, shared);
	return 0;
}

// churn: threads come and go.
static int churn(void)
{
	long sum = 0;
	ready();
	for (int i = 0; i < rounds; i++) {
		pthread_t th[4];
		for (int j = 0; j < 4; j++)
			pthread_create(&th[j], NULL, (void *(*)(void *))hot, (void *)(long)j);
		for (int j = 0; j < 4; j++) {
			void *r;
			pthread_join(th[j], &r);
			sum += (long)r;
		}
	}
	printf("%ld\n", sum);
	return 0;
}

// forks: children that return what hot does; some of theirs.
static int forks(void)
{
	long sum = 0;
	for (int i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (i % 4 == 0) {
				int status;
				pid_t grandchild = fork();
				if (grandchild == 0)
					_exit(hot(1));
				waitpid(grandchild, &status, 0);
				_exit(hot(WEXITSTATUS(status)));
			}
			_exit(hot(2));
		}
		int status;
		check(pid < 0 || waitpid(pid, &status, 0) != pid, "fork");
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : -1000000;
		hot(0);
	}
	printf("%ld\n", sum);
	return 0;
}

// spawn: vfork, and posix_spawn from two threads.
static void *spawner(void *arg)
{
	long sum = 0;
	for (int i = 0; i < rounds; i++) {
		char *argv[] = {"sh", "-c", "exit 3", NULL};
		pid_t pid;
		int status;
		check(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0, "posix_spawn");
		check(waitpid(pid, &status, 0) != pid, "waitpid");
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : -1000000;
		pid = vfork();
		if (pid == 0) {
			hot(1);
			_exit(4);
		}
		check(waitpid(pid, &status, 0) != pid, "waitpid");
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : -1000000;
		hot(0);
	}
	return (void *)sum;
}

static int spawn(void)
{
	pthread_t th;
	void *other;
	pthread_create(&th, NULL, spawner, NULL);
	long sum = (long)spawner(NULL);
	pthread_join(th, &other);
	printf("%ld\n", sum + (long)other);
	return 0;
}

// execute: another thread than the leader executes a program, while others count.
static void *executor(void *arg)
{
	usleep(2000);
	execl("/bin/echo", "echo", "executed", NULL);
	return NULL;
}

static int execute(void)
{
	pthread_t th;
	rounds = 1L << 60;
	for (int i = 0; i < 3; i++)
		pthread_create(&th, NULL, count, NULL);
	pthread_create(&th, NULL, executor, NULL);
	pthread_join(th, NULL);
	return 1;
}

// leader: the leader ends first.
static void *survivor(void *arg)
{
	usleep(20000);
	ready();
	long own = (long)count(NULL);
	printf("%ld\n", own);
	exit(5);
}

static int leader(void)
{
	pthread_t th;
	pthread_create(&th, NULL, survivor, NULL);
	pthread_exit(NULL);
}

// blocked: a thread for each system call that waits; none may see EINTR. They end when the
// test writes to standard input.
static int pipes[2], sockets[2];
static sem_t semaphore;
static atomic_int word;
static atomic_int bad;

static void report(const char *what, long r)
{
	if (r < 0 && errno == EINTR) {
		printf("%s: EINTR\n", what);
		bad = 1;
	}
}

static void *in_read(void *arg)
{
	char c;
	report("read", read(pipes[0], &c, 1));
	return NULL;
}

static void *in_poll(void *arg)
{
	struct pollfd p = {pipes[0], POLLIN};
	report("poll", poll(&p, 1, -1));
	return NULL;
}

static void *in_poll_timeout(void *arg)
{
	struct pollfd p = {pipes[0], POLLIN};
	report("poll with timeout", poll(&p, 1, 30000));
	return NULL;
}

static void *in_select(void *arg)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	report("select", select(pipes[0] + 1, &set, NULL, NULL, NULL));
	return NULL;
}

static void *in_epoll(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e);
	report("epoll_wait", epoll_wait(fd, &e, 1, -1));
	return NULL;
}

static void *in_epoll_pwait(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN};
	sigset_t set;
	sigemptyset(&set);
	int fd = epoll_create1(0);
	epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e);
	report("epoll_pwait", epoll_pwait(fd, &e, 1, 30000, &set));
	return NULL;
}

static void *in_semaphore(void *arg)
{
	report("sem_wait", sem_wait(&semaphore));
	return NULL;
}

static void *in_futex(void *arg)
{
	struct timespec t = {30, 0};
	report("futex", syscall(SYS_futex, &word, 0, 0, &t, NULL, 0));
	return NULL;
}

static void *in_nanosleep(void *arg)
{
	struct timespec t = {0, 700 * 1000 * 1000};
	report("nanosleep", nanosleep(&t, NULL));
	return NULL;
}

static void *in_receive(void *arg)
{
	char c;
	struct timeval t = {30, 0};
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	report("recv with timeout", recv(sockets[0], &c, 1, 0));
	return NULL;
}

static void *in_sigwait(void *arg)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	report("sigwaitinfo", sigwaitinfo(&set, NULL));
	return NULL;
}

static int semid;

static void *in_semop(void *arg)
{
	struct sembuf op = {0, -1, 0};
	report("semop", semop(semid, &op, 1));
	return NULL;
}

static void *in_suspend(void *arg)
{
	sigset_t set;
	sigfillset(&set);
	sigdelset(&set, SIGUSR2);
	sigsuspend(&set);
	return NULL;
}

static void nothing(int sig, siginfo_t *info, void *context) {}

static int blocked(void)
{
	void *(*f[])(void *) = {in_read, in_poll, in_poll_timeout, in_select, in_epoll, in_epoll_pwait,
		in_semaphore, in_futex, in_nanosleep, in_receive, in_sigwait, in_semop, in_suspend};
	enum { n = sizeof f / sizeof *f };
	pthread_t th[n];
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	handle(SIGUSR2, nothing);
	check(pipe(pipes), "pipe");
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
	sem_init(&semaphore, 0, 0);
	check((semid = semget(IPC_PRIVATE, 1, 0600)) < 0, "semget");
	for (int i = 0; i < n; i++)
		pthread_create(&th[i], NULL, f[i], NULL);
	usleep(100000);
	ready();
	char c;
	report("read of the leader", read(0, &c, 1));
	check(write(pipes[1], "x", 1) != 1 || write(sockets[1], "x", 1) != 1, "write");
	sem_post(&semaphore);
	word = 1;
	syscall(SYS_futex, &word, 1, 100, NULL, NULL, 0);
	struct sembuf op = {0, 1, 0};
	check(semop(semid, &op, 1), "semop");
	for (int i = 0; i < n; i++) {
		if (f[i] == in_sigwait)
			pthread_kill(th[i], SIGRTMIN);
		if (f[i] == in_suspend)
			pthread_kill(th[i], SIGUSR2);
	}
	usleep(10000);
	check(write(pipes[1], "x", 1) != 1, "write");
	for (int i = 0; i < n; i++)
		pthread_join(th[i], NULL);
	semctl(semid, 0, IPC_RMID);
	printf(bad ? "bad\n" : "no EINTR\n");
	return 0;
}

// wakes: signals that have to end system calls do, and those that are ignored do not.
static int wakes(void)
{
	struct sigaction a = {.sa_sigaction = nothing, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &a, NULL);
	struct epoll_event e;
	int fd = epoll_create1(0);
	ready();
	int r = epoll_wait(fd, &e, 1, -1);
	printf("%d %s\n", r, r < 0 ? strerror(errno) : "");
	fflush(stdout);
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	ready();
	r = epoll_wait(fd, &e, 1, 300);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("%d %d\n", r, (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 250);
	return 0;
}

// values: data that come with signals.
static volatile long got, wrong;

static void value(int sig, siginfo_t *info, void *context)
{
	if (info->si_code != SI_QUEUE || info->si_pid != getpid() || info->si_value.sival_int != got + 1)
		wrong++;
	got++;
	hot(0);
}

static int values(void)
{
	handle(SIGRTMIN + 3, value);
	ready();
	for (int i = 0; i < rounds; i++) {
		union sigval v = {.sival_int = i + 1};
		check(sigqueue(getpid(), SIGRTMIN + 3, v), "sigqueue");
		hot(0);
	}
	printf("%ld %ld\n", got, wrong);
	return 0;
}

// faults: a handler of SIGSEGV is told the address, and goes on elsewhere.
static char *page;

static void fault(int sig, siginfo_t *info, void *context)
{
	if (info->si_addr != page + 8)
		wrong++;
	got++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static int faults(void)
{
	handle(SIGSEGV, fault);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < rounds; i++) {
		mprotect(page, 4096, PROT_NONE);
		page[8] = hot(0);
	}
	printf("%ld %ld\n", got, wrong);
	return 0;
}

// traps: breakpoints of the program's own, SIGTRAP sent and raised, with and without it
// being blocked where the tracer has breakpoints.
static void trapped(int sig, siginfo_t *info, void *context)
{
	got++;
}

static int traps(void)
{
	sigset_t all, old, now;
	struct sigaction a;
	handle(SIGTRAP, trapped);
	__asm__ volatile("int3");
	__asm__ volatile(".byte 0xcd, 0x03");
	raise(SIGTRAP);
	usleep(5000);
	for (int i = 0; i < rounds; i++)
		hot(0); // the tracer gets to know the handler
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	hot(0);
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("%d ", sigismember(&now, SIGTRAP));
	raise(SIGTRAP);
	hot(0);
	printf("%ld ", got);
	sigprocmask(SIG_SETMASK, &old, NULL);
	printf("%ld ", got);
	sigaction(SIGTRAP, NULL, &a);
	printf("%d ", a.sa_sigaction == trapped && a.sa_flags & SA_SIGINFO);
	__asm__ volatile("int3");
	printf("%ld\n", got);
	return 0;
}

// ignores: SIGTRAP is ignored, and stays so.
static int ignores(void)
{
	char c;
	signal(SIGTRAP, SIG_IGN);
	ready();
	read(0, &c, 1);
	for (int i = 0; i < rounds; i++)
		hot(0);
	raise(SIGTRAP);
	ready();
	read(0, &c, 1);
	raise(SIGTRAP);
	struct sigaction a;
	sigaction(SIGTRAP, NULL, &a);
	printf("%d\n", a.sa_handler == SIG_IGN);
	return 0;
}

// loads: libraries come and go.
static int loads(void)
{
	for (int i = 0; i < 3; i++) {
		void *l = dlopen("libm.so.6", RTLD_NOW);
		check(l == NULL, "dlopen");
		double (*f)(double) = (double (*)(double))dlsym(l, "sqrt");
		printf("%.0f ", f(4));
		dlclose(l);
	}
	printf("\n");
	return 0;
}

// loop: calls hot for ever.
static int loop(void)
{
	ready();
	for (;;)
		hot(0);
}

// waits: does nothing until standard input ends.
static int waits(void)
{
	char c;
	ready();
	while (read(0, &c, 1) == 1)
		printf("%ld\n", hot(c)), fflush(stdout);
	printf("end\n");
	return 6;
}

/* Lets no memory be mapped, and no file be made: who tries is ended. */
static int filtered(void)
{
	struct sock_filter filter[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
		{BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_mmap},
		{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_memfd_create},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0, "PR_SET_NO_NEW_PRIVS");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0, "PR_SET_SECCOMP");
	for (long i = 0; i < rounds; i++)
		hot(i);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	rounds = argc > 2 ? atol(argv[2]) : 100;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "busy"))
		return busy(8);
	if (!strcmp(what, "churn"))
		return churn();
	if (!strcmp(what, "forks"))
		return forks();
	if (!strcmp(what, "spawn"))
		return spawn();
	if (!strcmp(what, "execute"))
		return execute();
	if (!strcmp(what, "leader"))
		return leader();
	if (!strcmp(what, "blocked"))
		return blocked();
	if (!strcmp(what, "wakes"))
		return wakes();
	if (!strcmp(what, "values"))
		return values();
	if (!strcmp(what, "faults"))
		return faults();
	if (!strcmp(what, "traps"))
		return traps();
	if (!strcmp(what, "ignores"))
		return ignores();
	if (!strcmp(what, "loads"))
		return loads();
	if (!strcmp(what, "filtered"))
		return filtered();
	if (!strcmp(what, "loop"))
		return loop();
	if (!strcmp(what, "waits"))
		return waits();
	return 2;
}
