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
    if (width == 1 && n >= 4096) {
        /* Four tables, so that equal neighbours do not wait for each other. */
        uint32_t seen[4][256] = {{0}};
        const uint8_t *key = keys;
        for (size_t first = 0; first < n; first += 1u << 30) {
            const size_t end = n - first < 1u << 30 ? n : first + (1u << 30);
            size_t i = first;
            for (; i + 4 <= end; i += 4) {
                for (int table = 0; table < 4; table++) seen[table][key[i + table]]++;
            }
            for (; i < end; i++) seen[0][key[i]]++;
            for (size_t group = 0; group < 256; group++) {
                const size_t found = (size_t)seen[0][group] + seen[1][group] + seen[2][group] +
                                     seen[3][group];
                if (group < groups) {
                    counts[group] += (int64_t)found;
                } else {
                    beyond += found;
                }
            }
            memset(seen, 0, sizeof seen);
        }
        return beyond == 0;
    }
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
   `next` holds where each group starts and is used up. Every group is written in a place of its
   own, which no processor foresees, so each asks for the line behind the one that it begins. */
#define ONE(Item, value)                                                                           \
    Item *to = (Item *)out + next[key[i]]++;                                                       \
    *to = (value);                                                                                 \
    PREFETCH_WRITE((char *)to + 64);
#define PLACE(Item, value)                                                                         \
    if (width == 1) {                                                                              \
        const uint8_t *key = keys;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            ONE(Item, value)                                                                       \
        }                                                                                          \
    } else if (width == 2) {                                                                       \
        const uint16_t *key = keys;                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            ONE(Item, value)                                                                       \
        }                                                                                          \
    } else {                                                                                       \
        const uint32_t *key = keys;                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            ONE(Item, value)                                                                       \
        }                                                                                          \
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
#undef ONE

/* Put items that are grouped already, so many of each group, where others of those groups end. */
static void F(merge)(const void *items, size_t size, const int64_t *sizes, size_t groups,
                     int64_t *next, void *out) {
    const char *from = items;
    for (size_t group = 0; group < groups; group++) {
        const size_t bytes = (size_t)sizes[group] * size;
        memcpy((char *)out + (size_t)next[group] * size, from, bytes);
        from += bytes;
        next[group] += sizes[group];
    }
}

#if INSTRUCTIONS == 512
/* Eight groups are shuffled in turns, so that the words of their generators come eight at a time.
   Of many drawn numbers those that are taken are found at once: how many of them were taken
   before decides only about numbers just below the item, and these are looked at one by one. */
#define WORDS 1024 /* of a group's generator, kept between turns */

/* A group under way: what is left is items 0 to `last`. */
typedef struct {
    void *items;
    size_t last;
} F(Group);

/* Write the next words of eight generators, those of each in a row; in multiples of eight. */
static void F(eight_words)(__m512i *s, size_t words, uint64_t *out) {
    const __m512i one = _mm512_set1_epi64(1);
    __m512i s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    for (size_t first = 0; first < words; first += 8) {
        __m512i r[8], t[8];
        for (int k = 0; k < 8; k++) {
            r[k] = _mm512_add_epi64(_mm512_add_epi64(s0, s3), s1);
            s3 = _mm512_add_epi64(s3, one);
            s0 = _mm512_xor_si512(s1, _mm512_srli_epi64(s1, 11));
            s1 = _mm512_add_epi64(s2, _mm512_slli_epi64(s2, 3));
            s2 = _mm512_add_epi64(_mm512_rol_epi64(s2, 24), r[k]);
        }
        for (int k = 0; k < 8; k += 2) {
            t[k / 2] = _mm512_unpacklo_epi64(r[k], r[k + 1]);
            t[4 + k / 2] = _mm512_unpackhi_epi64(r[k], r[k + 1]);
        }
        for (int odd = 0; odd < 2; odd++) {
            const __m512i *of = t + 4 * odd;
            const __m512i a = _mm512_shuffle_i64x2(of[0], of[1], 0x44);
            const __m512i b = _mm512_shuffle_i64x2(of[0], of[1], 0xee);
            const __m512i c = _mm512_shuffle_i64x2(of[2], of[3], 0x44);
            const __m512i d = _mm512_shuffle_i64x2(of[2], of[3], 0xee);
            uint64_t *to = out + first + odd * WORDS;
            _mm512_storeu_si512(to, _mm512_shuffle_i64x2(a, c, 0x88));
            _mm512_storeu_si512(to + 2 * WORDS, _mm512_shuffle_i64x2(a, c, 0xdd));
            _mm512_storeu_si512(to + 4 * WORDS, _mm512_shuffle_i64x2(b, d, 0x88));
            _mm512_storeu_si512(to + 6 * WORDS, _mm512_shuffle_i64x2(b, d, 0xdd));
        }
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
}

#define FAR 4096 /* from where on few of 32 numbers are so near */
/* Of numbers that may be taken, not all of which certainly are, find those that are. */
#define OPEN(maybe)                                                                                \
    for (uint32_t open = (maybe) ^ all; open; open &= open - 1) {                                  \
        const uint32_t bit = open & (0u - open), place = (uint32_t)__builtin_ctz(bit);             \
        const uint32_t before = (uint32_t)__builtin_popcount(all & (bit - 1));                     \
        all |= (half[at + place] & mask) <= i - before ? bit : 0;                                  \
    }

/* Find which items change places with the last ones, from `last` on, as drawn by rejection below
   the next power of two. Returns how many there are: fewer than `count`, or until none is left. */
static size_t F(taken)(const uint32_t *half, size_t count, size_t last, uint32_t *out) {
    uint32_t i = (uint32_t)last;
    size_t at = 0, found = 0;
    while (i && at < count) {
        const uint32_t mask = 0xffffffffu >> __builtin_clz(i), least = mask >> 1;
        const __m512i masks = _mm512_set1_epi32((int)mask);
        while (i > least && at < count) {
            if (i - least > 32 && i >= FAR && count - at >= 32) {
                const __m512i one = _mm512_and_si512(_mm512_loadu_si512(half + at), masks);
                const __m512i two = _mm512_and_si512(_mm512_loadu_si512(half + at + 16), masks);
                const __m512i low = _mm512_set1_epi32((int)(i - 31));
                const __m512i high = _mm512_set1_epi32((int)i);
                uint32_t all = _mm512_cmple_epu32_mask(one, low) |
                               (uint32_t)_mm512_cmple_epu32_mask(two, low) << 16;
                OPEN(_mm512_cmple_epu32_mask(one, high) |
                     (uint32_t)_mm512_cmple_epu32_mask(two, high) << 16)
                const __mmask16 first = (__mmask16)all, second = (__mmask16)(all >> 16);
                _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(first, one));
                found += (uint32_t)__builtin_popcount(first);
                _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(second, two));
                found += (uint32_t)__builtin_popcount(second);
                i -= (uint32_t)__builtin_popcount(all);
                at += 32;
            } else if (i - least > 16 && count - at >= 16) {
                const __m512i drawn = _mm512_and_si512(_mm512_loadu_si512(half + at), masks);
                const __m512i low = _mm512_set1_epi32((int)(i - 15));
                const __m512i high = _mm512_set1_epi32((int)i);
                uint32_t all = _mm512_cmple_epu32_mask(drawn, low);
                OPEN(_mm512_cmple_epu32_mask(drawn, high))
                const uint32_t more = (uint32_t)__builtin_popcount(all);
                _mm512_storeu_si512(out + found,
                                    _mm512_maskz_compress_epi32((__mmask16)all, drawn));
                found += more;
                i -= more;
                at += 16;
            } else {
                const uint32_t drawn = half[at++] & mask, taken = drawn <= i;
                out[found] = drawn;
                found += taken;
                i -= taken;
            }
        }
    }
    return found;
}
#undef OPEN
#undef FAR

#define SWAP(Item)                                                                                 \
    Item *last = (Item *)of->items + of->last;                                                     \
    for (size_t k = 0; k < found; k++, last--) {                                                   \
        Item *other = (Item *)of->items + with[k];                                                 \
        const Item mine = *last;                                                                   \
        *last = *other;                                                                            \
        *other = mine;                                                                             \
    }

/* Go on with a group by so many 32-bit words of its generator, two of each 64, the lower first. */
static void F(go_on)(F(Group) *of, size_t size, const uint64_t *words, size_t count) {
    uint32_t with[2 * WORDS + 32];
    const size_t found = F(taken)((const uint32_t *)words, 2 * count, of->last, with);
    if (size == 1) {
        SWAP(uint8_t)
    } else if (size == 2) {
        SWAP(uint16_t)
    } else if (size == 4) {
        SWAP(uint32_t)
    } else {
        SWAP(uint64_t)
    }
    of->last -= found;
}
#undef SWAP

/* Shuffle groups of items, each by itself. */
static void F(shuffles)(void *items, size_t size, const int64_t *starts, const int64_t *lengths,
                        size_t groups, const uint64_t *seeds) {
    ALIGNED(64) uint64_t words[8 * WORDS];
    for (size_t first = 0; first < groups; first += 8) {
        const size_t some = groups - first < 8 ? groups - first : 8;
        F(Group) of[8];
        uint64_t state[8][4];
        __m512i together[4];
        size_t longest = 0;
        for (size_t k = 0; k < 8; k++) {
            const size_t group = first + (k < some ? k : 0);
            const size_t length = (size_t)lengths[group];
            const uint64_t *seed = seeds + 3 * group;
            F(begin_sfc64)(state[k], seed[0], seed[1], seed[2]);
            of[k].items = (char *)items + (size_t)starts[group] * size;
            of[k].last = k < some && length ? length - 1 : 0;
            longest = of[k].last > longest ? of[k].last : longest;
        }
        for (int word = 0; word < 4; word++) {
            const __m512i rows = _mm512_set_epi64(28, 24, 20, 16, 12, 8, 4, 0);
            together[word] = _mm512_i64gather_epi64(rows, &state[0][word], 8);
        }
        while (longest) {
            /* Three of four numbers are taken, and every word has two. */
            const size_t wanted = (longest / 3 * 2 + 32) & ~(size_t)7;
            const size_t count = wanted < WORDS ? wanted : WORDS;
            if (some > 2) {
                F(eight_words)(together, count, words);
            } else {
                for (size_t k = 0; k < some; k++) {
                    uint64_t *mine = words + k * WORDS;
                    for (size_t word = 0; word < count; word++) mine[word] = F(sfc64)(state[k]);
                }
            }
            longest = 0;
            for (size_t k = 0; k < 8; k++) {
                if (of[k].last) F(go_on)(of + k, size, words + k * WORDS, count);
                longest = of[k].last > longest ? of[k].last : longest;
            }
        }
    }
}
#undef WORDS
#else
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
#endif
