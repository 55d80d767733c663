/* What messages are made of: sampled numbers, tossed bits, buckets, eight coins and histograms. */

/* Numbers from 0 to high[draw] - 1. */
static void F(sample)(const uint32_t *ids, size_t n, size_t draws, Key key, const double *high,
                      int64_t *out) {
    ALIGNED(64) uint32_t x0[BLOCK], x1[BLOCK];
    ALIGNED(64) double u[BLOCK];
    Counter at = {ids, 0, 0, draws, key};
    const size_t total = n * draws;
    size_t draw = 0;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        F(advance)(&at, x0, x1, some);
        F(unit)(x0, x1, some, u);
        for (size_t i = 0; i < some; i++) {
            u[i] *= high[draw];
            if (++draw == draws) draw = 0;
        }
        /* Below 2^31: through 32 bits, which every instruction set converts. */
        for (size_t i = 0; i < some; i++) out[done + i] = (int32_t)u[i];
    }
}

/* Messages 2 offset + bit: the bit is 1 with probability flip + gap * chance. */
#define TOSS(Item)                                                                                 \
    for (size_t i = 0; i < some; i++) {                                                            \
        const uint32_t twice = offset ? 2u * (uint32_t)offset[done + i] : 0u;                      \
        ((Item *)out)[done + i] = (Item)(twice + (u[i] < limit[i]));                               \
    }

static void F(toss)(const uint32_t *ids, size_t n, size_t draws, Key key, const int64_t *offset,
                    const double *chance, const double *flip, const double *gap, size_t size,
                    void *out) {
    ALIGNED(64) uint32_t x0[BLOCK], x1[BLOCK];
    ALIGNED(64) double u[BLOCK], limit[BLOCK];
    Counter at = {ids, 0, 0, draws, key};
    const size_t total = n * draws;
    size_t draw = 0;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        F(advance)(&at, x0, x1, some);
        F(unit)(x0, x1, some, u);
        if (draws == 1) {
            for (size_t i = 0; i < some; i++) limit[i] = chance[done + i] * gap[0] + flip[0];
        } else {
            for (size_t i = 0; i < some; i++) {
                limit[i] = chance[done + i] * gap[draw] + flip[draw];
                if (++draw == draws) draw = 0;
            }
        }
        if (size == 1) {
            TOSS(uint8_t)
        } else if (size == 2) {
            TOSS(uint16_t)
        } else {
            TOSS(uint32_t)
        }
    }
}
#undef TOSS

/* Ten buckets of 6 bits from every word: five of each half, the highest bits first. */
static void F(buckets)(const uint32_t *ids, size_t n, size_t draws, Key key, uint8_t *out) {
    ALIGNED(64) uint32_t x0[BLOCK], x1[BLOCK];
    Counter at = {ids, 0, 0, draws, key};
    const size_t total = n * draws;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        uint8_t *RESTRICT to = out + 10 * done;
        F(advance)(&at, x0, x1, some);
        for (size_t i = 0; i < some; i++) {
            for (int lane = 0; lane < 5; lane++) {
                to[10 * i + lane] = (x0[i] >> (26 - 6 * lane)) & 63;
                to[10 * i + 5 + lane] = (x1[i] >> (26 - 6 * lane)) & 63;
            }
        }
    }
}

/* The byte of a cell that an end of an interval cuts: 48 further bits, and a search. */
static uint8_t F(decide)(uint16_t cell, uint32_t id, uint32_t place, Key more,
                         const uint64_t *ends, size_t *ties) {
    uint32_t x0 = id, x1 = place;
    F(encrypt)(&x0, &x1, 1, more);
    const uint64_t number = (uint64_t)cell << 48 | (uint64_t)x0 << 16 | x1 >> 16;
    size_t byte = 0; /* how many of the 255 ends are not above the number */
    for (size_t step = 128; step; step /= 2) {
        if (ends[byte + step - 1] <= number) byte += step;
    }
    *ties += byte > 0 && ends[byte - 1] == number;
    return (uint8_t)byte;
}

/* Bytes of eight coins by a table of 65,536 cells; where it says 255, `open` says whether the cell
   is undecided. A row's cells are the 16-bit halves of all its first words, lower half first, then
   those of its second words. Returns how many bytes 64 bits do not decide. */
static size_t F(coins)(const uint32_t *ids, size_t n, size_t octets, Key key, Key more,
                       const uint8_t *table, const uint8_t *open, const uint64_t *ends,
                       uint8_t *out) {
    const size_t draws = (octets + 3) / 4, total = n * draws;
    ALIGNED(64) uint32_t words[2][BLOCK];
    Counter at = {ids, 0, 0, draws, key};
    size_t ties = 0, row = 0, draw = 0;
    for (size_t done = 0; done < total; done += BLOCK) {
        const size_t some = total - done < BLOCK ? total - done : BLOCK;
        F(advance)(&at, words[0], words[1], some);
        for (size_t i = 0; i < some; i++) {
            uint8_t *to = out + row * octets;
            for (size_t cell = 0; cell < 4; cell++) {
                const size_t place = 2 * ((cell >> 1) * draws + draw) + (cell & 1);
                if (place >= octets) continue;
                const uint16_t which = (uint16_t)(words[cell >> 1][i] >> (16 * (cell & 1)));
                uint8_t byte = table[which];
                if (byte == 255 && open[which]) {
                    byte = F(decide)(which, ids[row], (uint32_t)place, more, ends, &ties);
                }
                to[place] = byte;
            }
            if (++draw == draws) {
                draw = 0;
                row++;
            }
        }
    }
    return ties;
}

/* Add a histogram of symbols; row `index[i]` of `alphabet` cells, or the only one. Returns whether
   all lie inside. */
static int F(tally)(const int64_t *index, const void *symbols, size_t width, size_t n,
                    size_t rows, size_t alphabet, int64_t *counts) {
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t symbol = F(label)(symbols, width, i);
        const size_t row = index ? (size_t)index[i] : 0;
        if (symbol < alphabet && row < rows) {
            counts[row * alphabet + symbol]++;
        } else {
            beyond++;
        }
    }
    return beyond == 0;
}
