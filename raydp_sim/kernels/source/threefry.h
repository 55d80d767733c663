/* Threefry-2x32 with 20 rounds (Salmon et al. 2011), and what is made of its words. */

#define ROUND(turn)                                                                                \
    a += b;                                                                                        \
    b = (b << (turn)) | (b >> (32 - (turn)));                                                      \
    b ^= a;
#define FOUR_EVEN ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define FOUR_ODD ROUND(17) ROUND(29) ROUND(16) ROUND(24)

static void F(encrypt)(uint32_t *RESTRICT x0, uint32_t *RESTRICT x1, size_t n, Key key) {
    const uint32_t k0 = key.first, k1 = key.second, k2 = 0x1BD11BDAu ^ k0 ^ k1;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = x0[i] + k0, b = x1[i] + k1;
        FOUR_EVEN a += k1, b += k2 + 1u;
        FOUR_ODD a += k2, b += k0 + 2u;
        FOUR_EVEN a += k0, b += k1 + 3u;
        FOUR_ODD a += k1, b += k2 + 4u;
        FOUR_EVEN a += k2, b += k0 + 5u;
        x0[i] = a;
        x1[i] = b;
    }
}

#undef ROUND
#undef FOUR_EVEN
#undef FOUR_ODD

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
