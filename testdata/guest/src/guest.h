// Functions for a machine that runs them one by one. Nothing here needs a
// library or an operating system; arguments are integers and pointers.

#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>
#include <stdint.h>

// The compiler calls the first three by itself.
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
size_t length(const char *s);
int compare(const char *a, const char *b);
long find(const char *text, const char *word);
long number(const char *s);

typedef int (*order)(const void *, const void *);

void quick_sort(void *base, size_t n, size_t width, order before);
void sort_words(int64_t *words, size_t n);
void heap_sort(int64_t *words, size_t n);

uint32_t crc32(const uint8_t *data, size_t n);
uint32_t crc32_bitwise(const uint8_t *data, size_t n);
void sha256(const uint8_t *data, size_t n, uint8_t digest[32]);

long format(char *out, const char *pattern, ...);

long run_switch(const uint8_t *code, size_t n, int64_t input);
long run_goto(const uint8_t *code, size_t n, int64_t input);
long run_offsets(const uint8_t *code, size_t n, int64_t input);

long classes(const uint8_t *text, size_t n, uint32_t counts[8]);
long days(long year, long month);

long unwind(long depth, long value);
long unwind_builtin(long depth, long value);

long add_many(long *sum, long times);
long add_locked(long *lock, long *sum, long times);

#endif
