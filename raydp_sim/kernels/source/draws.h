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

/* What a message has of its block, for `some` messages from one of a row's on: one pass without a
   question about rows is twice as fast as one with. */
static void F(repeated)(const double *of, size_t draws, size_t draw, size_t some, double *out) {
    for (size_t i = 0; i < some; i++) {
        out[i] = of[draw];
        if (++draw == draws) draw = 0;
    }
}

/* Messages of one sampled coordinate of each block: its offset is drawn below `high` from one key
   and its bit tossed from another; a value v, cut to [-shift, shift], is 1 with chance
   (v + shift) scale, cut to [0, 1].
   Each value is in a line of its own, so those of a piece are asked for before the bits of the piece
   before it are tossed: as many as are on their way at once anyway. A piece has whole rows, unless
   one is longer. */
#define PICK(Item)                                                                                 \
    for (size_t i = 0; i < some; i++) {                                                            \
        ((Item *)out)[done + i] = (Item)(2u * (uint32_t)offset[i] + (u[i] < limit[i]));            \
    }

static void F(picked)(const uint32_t *ids, size_t n, size_t draws, Key index, Key key,
                      const void *values, size_t each, size_t d, const int64_t *starts,
                      const double *high, double shift, double scale, const double *flip,
                      const double *gap, size_t size, void *out) {
    enum { most = 128 }; /* of a piece; two are under way */
    ALIGNED(64) uint32_t x0[most], x1[most];
    ALIGNED(64) int32_t offsets[2][most];
    ALIGNED(64) double u[most], limit[most], below[most], flips[most], gaps[most];
    ALIGNED(64) uint64_t begin[most];
    ALIGNED(64) uint64_t places[2][most];
    Counter drawn = {ids, 0, 0, draws, index}, tossed = {ids, 0, 0, draws, key};
    const size_t total = n * draws, whole = draws && draws < most ? most / draws * draws : most;
    size_t draw = 0, again = 0, row = 0;
    for (size_t asked = 0, done = 0; done < total; asked += whole) {
        if (asked < total) {
            const size_t some = total - asked < whole ? total - asked : whole;
            uint64_t *at = places[asked / whole % 2];
            int32_t *offset = offsets[asked / whole % 2];
            if (!asked || draws > most) {
                F(repeated)(high, draws, draw, some, below);
                size_t beyond = 0;
                for (size_t i = 0; i < some; i++) {
                    begin[i] = (beyond * d + (uint64_t)starts[draw]) * each;
                    if (++draw == draws) {
                        draw = 0;
                        beyond++;
                    }
                }
            }
            F(advance)(&drawn, x0, x1, some);
            F(unit)(x0, x1, some, u);
            const uint64_t from = row * d * each;
            for (size_t i = 0; i < some; i++) {
                offset[i] = (int32_t)(u[i] * below[i]);
                at[i] = from + begin[i] + ((uint64_t)offset[i] << (each == 8 ? 3 : 2));
            }
            for (size_t i = 0; i < some; i++) PREFETCH((const char *)values + at[i]);
            row = (asked + some) / draws;
        }
        if (!asked) continue;
        const size_t some = total - done < whole ? total - done : whole;
        const uint64_t *at = places[done / whole % 2];
        const int32_t *offset = offsets[done / whole % 2];
        if (!done || draws > most) {
            F(repeated)(flip, draws, again, some, flips);
            F(repeated)(gap, draws, again, some, gaps);
            again = (again + some) % draws;
        }
        F(advance)(&tossed, x0, x1, some);
        F(unit)(x0, x1, some, u);
        const char *from = values;
        if (each == sizeof(float)) {
            for (size_t i = 0; i < some; i++) limit[i] = *(const float *)(from + at[i]);
        } else {
            for (size_t i = 0; i < some; i++) limit[i] = *(const double *)(from + at[i]);
        }
        for (size_t i = 0; i < some; i++) {
            double z = limit[i];
            z = z < -shift ? -shift : z;
            z = ((z > shift ? shift : z) + shift) * scale;
            z = z < 0.0 ? 0.0 : z;
            z = z > 1.0 ? 1.0 : z;
            limit[i] = z * gaps[i] + flips[i];
        }
        if (size == 1) {
            PICK(uint8_t)
        } else if (size == 2) {
            PICK(uint16_t)
        } else {
            PICK(uint32_t)
        }
        done += some;
    }
}
#undef PICK

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

/* The bucket of every message of a range of clients, from words that short reports share: of ten
   lanes, as many whole reports as fit, or else ten messages of one. With `apart` the next 64 numbers
   are for the next message of a report. */
#define LANE(lane) (((lane) < 5 ? high >> (26 - 6 * (lane)) : low >> (56 - 6 * (lane))) & 63)
#define DEAL(Item)                                                                                 \
    for (size_t i = 0; i < some; i++) {                                                            \
        const uint32_t high = x0[i], low = x1[i];                                                  \
        const size_t begin = 10 * word, lanes = full - begin < 10 ? full - begin : 10;             \
        for (size_t lane = 0; lane < lanes; lane++, at++) {                                        \
            const uint32_t more = each * (uint32_t)((begin + lane) % messages);                    \
            if (at >= skip && at - skip < total) ((Item *)out)[at - skip] = (Item)(LANE(lane) + more); \
        }                                                                                          \
        if (++word == words) word = 0;                                                             \
    }

/* Write the lanes of whole words as bytes, each word's at most ten behind those before. */
static void F(lanes)(const uint32_t *RESTRICT x0, const uint32_t *RESTRICT x1, size_t n,
                     size_t lanes, const uint32_t *more, uint8_t *RESTRICT out) {
    ALIGNED(64) uint32_t first[BLOCK], second[BLOCK], third[BLOCK];
    const uint32_t a = more[0], b = more[1], c = more[2];
    for (size_t i = 0; i < n; i++) {
        const uint32_t high = x0[i], low = x1[i];
        first[i] = (LANE(0) | LANE(1) << 8 | LANE(2) << 16 | LANE(3) << 24) + a;
        second[i] = (LANE(4) | LANE(5) << 8 | LANE(6) << 16 | LANE(7) << 24) + b;
        third[i] = (LANE(8) | LANE(9) << 8) + c;
    }
    /* What is written beyond a word's own lanes is the next one's to write. */
    for (size_t i = 0; i < n; i++) {
        memcpy(out + lanes * i, first + i, 4);
        memcpy(out + lanes * i + 4, second + i, 4);
        memcpy(out + lanes * i + 8, third + i, 2);
    }
}

static void F(dealt)(uint32_t first, size_t clients, size_t messages, int apart, Key key,
                     size_t width, void *out) {
    ALIGNED(64) uint32_t x0[BLOCK], x1[BLOCK];
    const size_t share = messages > 10 ? 1 : 10 / messages, words = (messages + 9) / 10;
    const size_t full = share * messages, total = clients * messages;
    const size_t skip = first % share * messages;
    const size_t rows = total ? (skip + total + full - 1) / full : 0;
    const uint32_t each = apart ? 64 : 0;
    uint32_t next = (uint32_t)(first / share), more[3] = {0, 0, 0};
    size_t word = 0, drawn = 0, at = 0;
    for (size_t lane = 0; lane < 10; lane++) {
        more[lane / 4] |= (each * (uint32_t)(lane % messages) & 255) << (8 * (lane % 4));
    }
    for (size_t done = 0; done < rows * words; done += BLOCK) {
        const size_t some = rows * words - done < BLOCK ? rows * words - done : BLOCK;
        for (size_t i = 0; i < some; i++) {
            x0[i] = next;
            x1[i] = (uint32_t)drawn;
            if (++drawn == words) {
                drawn = 0;
                next++;
            }
        }
        F(encrypt)(x0, x1, some, key);
        if (LITTLE && width == 1 && words == 1 && at >= skip &&
            at - skip + full * some + 10 <= total) {
            F(lanes)(x0, x1, some, full, more, (uint8_t *)out + (at - skip));
            at += full * some;
        } else if (width == 1) {
            DEAL(uint8_t)
        } else if (width == 2) {
            DEAL(uint16_t)
        } else {
            DEAL(uint32_t)
        }
    }
}
#undef DEAL
#undef LANE

/* Bytes whose cell an end of an interval cuts, decided many at a time. */
typedef struct {
    size_t count, ties;
    uint32_t id[BLOCK], place[BLOCK];
    uint16_t cell[BLOCK];
    uint8_t *at[BLOCK];
} F(Open);

/* Decide them by 48 further bits each and a search. */
static void F(decide)(F(Open) *open, Key more, const uint64_t *ends) {
    F(encrypt)(open->id, open->place, open->count, more);
    for (size_t i = 0; i < open->count; i++) {
        const uint64_t number =
            (uint64_t)open->cell[i] << 48 | (uint64_t)open->id[i] << 16 | open->place[i] >> 16;
        size_t byte = 0; /* how many of the 255 ends are not above the number */
        for (size_t step = 128; step; step /= 2) {
            byte += step & (0 - (size_t)(ends[byte + step - 1] <= number));
        }
        open->ties += byte > 0 && ends[byte - 1] == number;
        *open->at[i] = (uint8_t)byte;
    }
    open->count = 0;
}

/* Bytes of eight coins by a table of 65,536 cells; where it says 255, `undecided` says whether
   an end of an interval cuts the cell. A row's cells are the 16-bit halves of all its first words, lower half first, then
   those of its second words. Returns how many bytes 64 bits do not decide. */
static size_t F(coins)(const uint32_t *ids, size_t n, size_t octets, Key key, Key more,
                       const uint8_t *table, const uint8_t *undecided, const uint64_t *ends,
                       uint8_t *out) {
    const size_t draws = (octets + 3) / 4, whole = draws && draws < BLOCK ? BLOCK / draws : 1;
    ALIGNED(64) uint32_t words[2][BLOCK];
    F(Open) open;
    open.count = open.ties = 0;
    for (size_t first = 0; first < n; first += whole) {
        const size_t rows = n - first < whole ? n - first : whole;
        Counter at = {ids, first, 0, draws, key};
        /* Several short rows at once, or pieces of a long one. */
        for (size_t start = 0; start < draws; start += BLOCK) {
            const size_t some = draws - start < BLOCK ? draws - start : BLOCK;
            F(advance)(&at, words[0], words[1], rows * some);
            for (size_t row = 0; row < rows; row++) {
                for (size_t side = 0; side < 2; side++) {
                    const size_t begin = 2 * (side * draws + start);
                    const size_t left = begin < octets ? octets - begin : 0;
                    const size_t count = left < 2 * some ? left : 2 * some;
                    const uint32_t *from = words[side] + row * some;
                    uint8_t *to = out + (first + row) * octets + begin;
                    unsigned doubtful = 0;
                    for (size_t i = 0; i + 1 < count; i += 2) {
                        const uint8_t one = table[from[i / 2] & 0xffff];
                        const uint8_t other = table[from[i / 2] >> 16];
                        doubtful |= (one == 255) | (other == 255);
                        to[i] = one;
                        to[i + 1] = other;
                    }
                    if (count & 1) {
                        to[count - 1] = table[from[count / 2] & 0xffff];
                        doubtful |= to[count - 1] == 255;
                    }
                    for (size_t i = 0; doubtful && i < count; i++) {
                        const uint16_t cell = (uint16_t)(from[i / 2] >> (16 * (i & 1)));
                        if (to[i] != 255 || !undecided[cell]) continue;
                        open.id[open.count] = ids[first + row];
                        open.place[open.count] = (uint32_t)(begin + i);
                        open.cell[open.count] = cell;
                        open.at[open.count++] = to + i;
                        if (open.count == BLOCK) F(decide)(&open, more, ends);
                    }
                }
            }
        }
    }
    F(decide)(&open, more, ends);
    return open.ties;
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

/* Flip one bit of every row, the first bit of a byte being its highest. Returns whether all lie
   inside. */
static int F(mark)(uint8_t *rows, size_t n, size_t octets, const int64_t *bit) {
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t which = (uint64_t)bit[i];
        if (which < 8 * octets) {
            rows[i * octets + (which >> 3)] ^= (uint8_t)(128u >> (which & 7));
        } else {
            beyond++;
        }
    }
    return beyond == 0;
}
