/* Stable grouping by small numbers, and NumPy's Fisher-Yates shuffle inside each group. */

static inline size_t F(label)(const void *keys, size_t width, size_t i) {
    if (width == 1) return ((const uint8_t *)keys)[i];
    if (width == 2) return ((const uint16_t *)keys)[i];
    return ((const uint32_t *)keys)[i];
}

/* Count every key, of `width` bytes; return whether all are below `groups`. */
static int F(sizes)(const void *keys, size_t width, size_t n, size_t groups, int64_t *counts) {
    size_t beyond = 0;
    memset(counts, 0, groups * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        const size_t key = F(label)(keys, width, i);
        if (key < groups) {
            counts[key]++;
        } else {
            beyond++;
        }
    }
    return beyond == 0;
}

/* Put the numbers of rows, or short items themselves, group by group in the order they come.
   `next` holds where each group starts and is used up. */
#define PLACE(Item, value)                                                                         \
    if (width == 1) {                                                                              \
        const uint8_t *key = keys;                                                                 \
        for (size_t i = 0; i < n; i++) ((Item *)out)[next[key[i]]++] = (value);                    \
    } else if (width == 2) {                                                                       \
        const uint16_t *key = keys;                                                                \
        for (size_t i = 0; i < n; i++) ((Item *)out)[next[key[i]]++] = (value);                    \
    } else {                                                                                       \
        const uint32_t *key = keys;                                                                \
        for (size_t i = 0; i < n; i++) ((Item *)out)[next[key[i]]++] = (value);                    \
    }

static void F(place)(const void *keys, size_t width, size_t n, int64_t *next, const void *given,
                     size_t size, void *out) {
    if (given == NULL) {
        PLACE(int64_t, (int64_t)i)
    } else if (size == 1) {
        PLACE(uint8_t, ((const uint8_t *)given)[i])
    } else if (size == 2) {
        PLACE(uint16_t, ((const uint16_t *)given)[i])
    } else {
        PLACE(uint32_t, ((const uint32_t *)given)[i])
    }
}
#undef PLACE

/* A generator's 32-bit words: two of each 64, the lower first. */
typedef struct {
    uint64_t s[4];
    uint32_t kept;
    int has;
} F(Halves);

static inline uint32_t F(half)(F(Halves) *of) {
    if (of->has) {
        of->has = 0;
        return of->kept;
    }
    const uint64_t word = F(sfc64)(of->s);
    of->kept = (uint32_t)(word >> 32);
    of->has = 1;
    return (uint32_t)word;
}

/* From the last item on, each changes places with one up to itself, drawn by rejection below the
   next power of two. What is rejected changes places with itself: there is no branch to guess. */
#define SWAP(Item)                                                                                 \
    Item *all = items;                                                                             \
    uint32_t i = (uint32_t)n - 1;                                                                  \
    for (uint32_t mask = 0xffffffffu; mask; mask >>= 1) {                                          \
        while (i > mask >> 1) {                                                                    \
            const uint32_t drawn = F(half)(&of) & mask, taken = drawn <= i;                        \
            const uint32_t j = i ^ ((i ^ drawn) & (0u - taken));                                   \
            const Item mine = all[i];                                                              \
            all[i] = all[j];                                                                       \
            all[j] = mine;                                                                         \
            i -= taken;                                                                            \
        }                                                                                          \
    }

/* Shuffle n < 2^32 items of `size` bytes with the generator of this seed. */
static void F(shuffle)(void *items, size_t n, size_t size, const uint64_t *seed) {
    F(Halves) of = {{0}, 0, 0};
    if (n < 2) return;
    F(begin_sfc64)(of.s, seed[0], seed[1], seed[2]);
    if (size == 1) {
        SWAP(uint8_t)
    } else if (size == 2) {
        SWAP(uint16_t)
    } else if (size == 4) {
        SWAP(uint32_t)
    } else {
        SWAP(uint64_t)
    }
}
#undef SWAP

/* Shuffle groups of items, each by itself. */
static void F(shuffles)(void *items, size_t size, const int64_t *starts, const int64_t *lengths,
                        size_t groups, const uint64_t *seeds) {
    for (size_t group = 0; group < groups; group++) {
        char *first = (char *)items + (size_t)starts[group] * size;
        F(shuffle)(first, (size_t)lengths[group], size, seeds + 3 * group);
    }
}
