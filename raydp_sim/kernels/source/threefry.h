/* Threefry-2x32 with 20 rounds (Salmon et al. 2011), and what is made of its words. */

#define ROUND(turn)                                                                                \
    EACH a[k] += b[k];                                                                             \
    EACH b[k] = (b[k] << (turn)) | (b[k] >> (32 - (turn)));                                        \
    EACH b[k] ^= a[k];
#define ADD(one, other, count)                                                                     \
    EACH a[k] += (one);                                                                            \
    EACH b[k] += (other) + (count);
#define FOUR_EVEN ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define FOUR_ODD ROUND(17) ROUND(29) ROUND(16) ROUND(24)
#define TWENTY                                                                                     \
    ADD(k0, k1, 0u)                                                                                \
    FOUR_EVEN ADD(k1, k2, 1u)                                                                      \
    FOUR_ODD ADD(k2, k0, 2u)                                                                       \
    FOUR_EVEN ADD(k0, k1, 3u)                                                                      \
    FOUR_ODD ADD(k1, k2, 4u)                                                                       \
    FOUR_EVEN ADD(k2, k0, 5u)

#ifdef VECTORS
/* Several registers side by side: in each, every step waits for the one before. */
#define SIDES 4
typedef uint32_t F(Words) __attribute__((vector_size(REGISTER)));
#endif

static void F(encrypt)(uint32_t *RESTRICT x0, uint32_t *RESTRICT x1, size_t n, Key key) {
    const uint32_t k0 = key.first, k1 = key.second, k2 = 0x1BD11BDAu ^ k0 ^ k1;
    size_t i = 0;
#ifdef VECTORS
#define EACH for (int k = 0; k < SIDES; k++)
    F(Words) a[SIDES], b[SIDES];
    const size_t together = SIDES * REGISTER / sizeof *x0;
    for (; i + together <= n; i += together) {
        memcpy(a, x0 + i, sizeof a);
        memcpy(b, x1 + i, sizeof b);
        TWENTY
        memcpy(x0 + i, a, sizeof a);
        memcpy(x1 + i, b, sizeof b);
    }
    if (i < n) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        memcpy(a, x0 + i, (n - i) * sizeof *x0);
        memcpy(b, x1 + i, (n - i) * sizeof *x1);
        TWENTY
        memcpy(x0 + i, a, (n - i) * sizeof *x0);
        memcpy(x1 + i, b, (n - i) * sizeof *x1);
    }
#undef SIDES
#else
#define EACH for (int k = 0; k < 1; k++)
    for (; i < n; i++) {
        uint32_t *a = x0 + i, *b = x1 + i;
        TWENTY
    }
#endif
#undef EACH
}

#undef ROUND
#undef ADD
#undef FOUR_EVEN
#undef FOUR_ODD
#undef TWENTY

/* Write the counters of whole rows; with a constant number of draws this is a few wide stores. */
#define FILL(count)                                                                                \
    for (size_t i = 0; i < n / (count); i++) {                                                     \
        for (uint32_t k = 0; k < (count); k++) {                                                   \
            x0[(count) * i + k] = at->ids[at->row + i];                                            \
            x1[(count) * i + k] = k;                                                               \
        }                                                                                          \
    }                                                                                              \
    at->row += n / (count);

/* Encrypt the next n counters. */
static void F(advance)(Counter *at, uint32_t *RESTRICT x0, uint32_t *RESTRICT x1, size_t n) {
    if (at->draws == 1) {
        memcpy(x0, at->ids + at->row, n * sizeof *x0);
        memset(x1, 0, n * sizeof *x1);
        at->row += n;
    } else if (at->draws == 4 && at->draw == 0 && n % 4 == 0) {
        FILL(4)
    } else if (at->draws == 8 && at->draw == 0 && n % 8 == 0) {
        FILL(8)
    } else {
        size_t row = at->row, draw = at->draw;
        const size_t draws = at->draws;
        for (size_t i = 0; i < n; i++) {
            x0[i] = at->ids[row];
            x1[i] = (uint32_t)draw;
            if (++draw == draws) {
                draw = 0;
                row++;
            }
        }
        at->row = row;
        at->draw = draw;
    }
    F(encrypt)(x0, x1, n, at->key);
}

#undef FILL

/* Make 53-bit uniforms of words: 32 bits of the first and 21 of the second, exact in a double. */
static void F(unit)(const uint32_t *RESTRICT x0, const uint32_t *RESTRICT x1, size_t n,
                    double *RESTRICT out) {
    for (size_t i = 0; i < n; i++) {
        out[i] = ((double)x0[i] * 0x1p21 + (double)(x1[i] >> 11)) * 0x1p-53;
    }
}

#define BLOCK 512

static void F(words)(const uint32_t *ids, size_t n, size_t draws, Key key, uint32_t *high,
                     uint32_t *low) {
    Counter at = {ids, 0, 0, draws, key};
    const size_t total = n * draws;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        F(advance)(&at, high + done, low + done, some);
    }
}

static void F(uniforms)(const uint32_t *ids, size_t n, size_t draws, Key key, double *out) {
    ALIGNED(64) uint32_t x0[BLOCK], x1[BLOCK];
    Counter at = {ids, 0, 0, draws, key};
    const size_t total = n * draws;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        F(advance)(&at, x0, x1, some);
        F(unit)(x0, x1, some, out + done);
    }
}
