/* Passes over long rows: sums in NumPy's order or exact in any, largest entries, gathered rows. */

#define STRIP 512 /* columns whose sums stay in the first cache */

/* NumPy's pairwise sum, here of squares: halves down to 128 terms, those in eight sums. */
#define SQUARES(REAL, NAME)                                                                        \
    static double NAME(const REAL *x, size_t n) {                                                  \
        if (n > 128) {                                                                             \
            const size_t half = n / 2 - n / 2 % 8;                                                 \
            return NAME(x, half) + NAME(x + half, n - half);                                       \
        }                                                                                          \
        double total = 0.0, sums[8];                                                               \
        size_t c = 0;                                                                              \
        if (n >= 8) {                                                                              \
            for (int lane = 0; lane < 8; lane++) sums[lane] = (double)x[lane] * (double)x[lane];   \
            for (c = 8; c + 8 <= n; c += 8) {                                                      \
                for (int lane = 0; lane < 8; lane++) {                                             \
                    sums[lane] += (double)x[c + lane] * (double)x[c + lane];                       \
                }                                                                                  \
            }                                                                                      \
            total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +                                  \
                    ((sums[4] + sums[5]) + (sums[6] + sums[7]));                                   \
        }                                                                                          \
        for (; c < n; c++) total += (double)x[c] * (double)x[c];                                   \
        return total;                                                                              \
    }
SQUARES(float, F(squares_float))
SQUARES(double, F(squares_double))
#undef SQUARES

static void F(squares)(const void *x, size_t size, size_t n, size_t d, double *out) {
    for (size_t row = 0; row < n; row++) {
        out[row] = size == 4 ? F(squares_float)((const float *)x + row * d, d)
                             : F(squares_double)((const double *)x + row * d, d);
    }
}

/* Round x factor scale to whole numbers and sum every column; without factors they are 1. Returns 0
   if one of them is not below `most` in size; below it no sum is rounded. */
#define STEP(ROW, FACTOR) rint((double)from[(ROW) * d + c] * (FACTOR) * scale)
#define STEPS(REAL, NAME)                                                                          \
    static int NAME(const REAL *x, const double *factors, size_t n, size_t d, double scale,        \
                    double most, double *total) {                                                  \
        for (size_t start = 0; start < d; start += STRIP) {                                        \
            const size_t columns = d - start < STRIP ? d - start : STRIP;                          \
            double *RESTRICT sum = total + start, largest[STRIP] = {0}, f[4] = {1, 1, 1, 1};       \
            size_t row = 0;                                                                        \
            for (size_t c = 0; c < columns; c++) sum[c] = 0.0;                                     \
            for (; row + 4 <= n; row += 4) {                                                       \
                const REAL *RESTRICT from = x + row * d + start;                                   \
                for (size_t each = 0; factors && each < 4; each++) f[each] = factors[row + each];  \
                for (size_t c = 0; c < columns; c++) {                                             \
                    const double one = STEP(0, f[0]), two = STEP(1, f[1]);                         \
                    const double three = STEP(2, f[2]), four = STEP(3, f[3]);                      \
                    /* Of two the second where one is no number, and then so is the sum. */        \
                    const double left = fabs(one) > fabs(two) ? fabs(one) : fabs(two);             \
                    const double right = fabs(three) > fabs(four) ? fabs(three) : fabs(four);      \
                    const double both = left > right ? left : right;                               \
                    largest[c] = both > largest[c] ? both : largest[c];                            \
                    sum[c] += (one + two) + (three + four);                                        \
                }                                                                                  \
            }                                                                                      \
            for (; row < n; row++) {                                                               \
                const REAL *RESTRICT from = x + row * d + start;                                   \
                const double factor = factors ? factors[row] : 1.0;                                \
                for (size_t c = 0; c < columns; c++) {                                             \
                    const double one = STEP(0, factor);                                            \
                    largest[c] = fabs(one) > largest[c] ? fabs(one) : largest[c];                  \
                    sum[c] += one;                                                                 \
                }                                                                                  \
            }                                                                                      \
            for (size_t c = 0; c < columns; c++) {                                                 \
                if (!(largest[c] < most) || sum[c] != sum[c]) return 0;                            \
            }                                                                                      \
        }                                                                                          \
        return 1;                                                                                  \
    }
STEPS(float, F(steps_float))
STEPS(double, F(steps_double))
#undef STEPS
#undef STEP

static int F(steps)(const void *x, size_t size, const double *factors, size_t n, size_t d,
                    double scale, double most, double *total) {
    return size == 4 ? F(steps_float)(x, factors, n, d, scale, most, total)
                     : F(steps_double)(x, factors, n, d, scale, most, total);
}

/* The largest entry of every row in size. Without their signs, floats are in the order of their
   bits, and what is no number comes last. */
#define LARGEST(REAL, BITS, MASK)                                                                  \
    for (size_t row = 0; row < n; row++) {                                                         \
        const BITS *RESTRICT from = (const BITS *)x + row * d;                                     \
        BITS most = 0;                                                                             \
        REAL found;                                                                                \
        for (size_t c = 0; c < d; c++) {                                                           \
            const BITS size = from[c] & MASK;                                                      \
            most = size > most ? size : most;                                                      \
        }                                                                                          \
        memcpy(&found, &most, sizeof found);                                                       \
        out[row] = (double)found;                                                                  \
    }
static void F(largest)(const void *x, size_t size, size_t n, size_t d, double *out) {
    if (size == 4) {
        LARGEST(float, uint32_t, UINT32_C(0x7fffffff))
    } else {
        LARGEST(double, uint64_t, UINT64_C(0x7fffffffffffffff))
    }
}
#undef LARGEST

/* Rows of a pool, of floats as they are or of bytes times `scale`. They are all over a memory that
   no cache holds, so each is called for two rows before it is copied. */
static void F(gathered)(const void *pool, size_t size, size_t d, const int64_t *at, size_t n,
                        float scale, float *out) {
    const char *all = pool;
    for (size_t row = 0; row < n; row++) {
        const char *from = all + (size_t)at[row] * d * size;
        float *RESTRICT to = out + row * d;
#if defined(__GNUC__)
        if (row + 2 < n) {
            const char *next = all + (size_t)at[row + 2] * d * size;
            for (size_t byte = 0; byte < d * size; byte += 64) __builtin_prefetch(next + byte, 0, 0);
        }
#endif
        if (size == 4) {
            memcpy(to, from, d * size);
        } else {
            const uint8_t *RESTRICT bytes = (const uint8_t *)from;
            for (size_t c = 0; c < d; c++) to[c] = (float)bytes[c] * scale;
        }
    }
}
