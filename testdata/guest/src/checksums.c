#include "guest.h"

#define POLYNOMIAL 0xedb88320u

static uint32_t table[256];
static int ready; // the table is

static uint32_t shifted(uint32_t c, int bits)
{
	while (bits-- > 0)
		c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
	return c;
}

uint32_t crc32_bitwise(const uint8_t *data, size_t n)
{
	uint32_t c = ~0u;

	while (n-- > 0)
		c = shifted(c ^ *data++, 8);
	return ~c;
}

uint32_t crc32(const uint8_t *data, size_t n)
{
	uint32_t c = ~0u;

	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 256; i++)
			table[i] = shifted(i, 8);
		__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	}
	while (n-- > 0)
		c = table[(c ^ *data++) & 255] ^ c >> 8;
	return ~c;
}

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void block(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
		       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memmove(s, h, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t big = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
		uint32_t one = s[7] + big + ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
		uint32_t small = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
		uint32_t two = small + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 28);
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

void sha256(const uint8_t *data, size_t n, uint8_t digest[32])
{
	uint32_t h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	uint8_t last[128];
	size_t rest = n % 64, size = rest < 56 ? 64 : 128;

	for (size_t i = 0; i + 64 <= n; i += 64)
		block(h, data + i);
	memset(last, 0, sizeof(last));
	memmove(last, data + n - rest, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[size - 1 - i] = (uint64_t)n * 8 >> 8 * i;
	for (size_t i = 0; i < size; i += 64)
		block(h, last + i);
	for (int i = 0; i < 32; i++)
		digest[i] = h[i / 4] >> (24 - i % 4 * 8);
}
