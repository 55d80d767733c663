/* What rests on the transform: Kashin's coefficients, and single entries of a rotated vector. */

/* Coefficients of rows by truncation, see kernels/plain/frames.py; `rest` is used up. */
static void F(coefficients)(double *kept, double *rest, size_t n, size_t full, int rounds,
                            double cut, const double *frame) {
    for (size_t first = 0; first < n; first += TOGETHER) {
        const size_t rows = n - first < TOGETHER ? n - first : TOGETHER;
        double *left = rest + first * full, *sum = kept + first * full;
        double square[TOGETHER];
        F(transforms_double)(left, rows, full);
        for (int round = 0; round < rounds; round++) {
            F(dots)(left, left, rows, full, square);
            for (size_t row = 0; row < rows; row++) {
                double *RESTRICT mine = left + row * full, *RESTRICT into = sum + row * full;
                const double limit = cut * sqrt(square[row] / (double)full);
                for (size_t c = 0; c < full; c++) {
                    double small = mine[c] < -limit ? -limit : mine[c];
                    small = small > limit ? limit : small;
                    into[c] += small;
                    mine[c] -= small;
                }
                F(transform_double)(mine, full);
                for (size_t c = 0; c < full; c++) mine[c] *= frame[c];
                F(transform_double)(mine, full);
            }
        }
        for (size_t i = 0; i < rows * full; i++) sum[i] += left[i];
    }
}

/* A sum plus a number times 1 or -1: as the product is exact, one rounding is that of two steps. */
#if INSTRUCTIONS == 512
#define SIGNED(sum, sign, number) (F(Vector_double)) _mm512_fmadd_pd(sign, number, sum)
#elif defined(VECTORS)
#define SIGNED(sum, sign, number) ((sum) + (sign) * (number))
#endif
#define ACROSS (REGISTER == 64 ? 4 : 2) /* vectors of columns: four sums of each fit the registers */

/* Rows of (signs * numbers) as a matrix, summed from the first to the last in four ways, each row
   times 1 or -1. The rows that `last` follows are in `whole`; where `next` is given, what is as far
   from it as a row is from `whole` is asked for meanwhile. */
static void F(combine)(const double *const *factor, size_t rows, const double *RESTRICT whole,
                       const double *RESTRICT last, const double *RESTRICT signs, size_t columns,
                       const double *next, double *RESTRICT into) {
    const size_t all = rows + (last != NULL);
    size_t k = 0;
#ifdef VECTORS
    typedef F(Vector_double) Vector;
    enum { wide = REGISTER / 8, strip = ACROSS * wide };
    for (; k + strip <= columns; k += strip) {
        Vector sum[TOGETHER][ACROSS] = {{{0}}}, number[ACROSS];
        for (size_t j = 0; j < all; j++) {
            const size_t at = j * columns + k;
            const double *from = j < rows ? whole + at : last + k;
            for (int i = 0; i < ACROSS; i++) {
                const Vector side = *(const Vector *)(signs + at + i * wide);
                number[i] = *(const Vector *)(from + i * wide) * side;
            }
            for (size_t i = 0; next && j < rows && i < strip; i += 8) PREFETCH(next + at + i);
            for (int l = 0; l < TOGETHER; l++) {
                const Vector sign = factor[l][j] - (Vector){0};
                for (int i = 0; i < ACROSS; i++) sum[l][i] = SIGNED(sum[l][i], sign, number[i]);
            }
        }
        for (int l = 0; l < TOGETHER; l++) {
            for (int i = 0; i < ACROSS; i++) {
                *(Vector *)(into + l * columns + k + i * wide) = sum[l][i];
            }
        }
    }
#endif
    for (; k < columns; k++) {
        double sum[TOGETHER] = {0};
        for (size_t j = 0; j < all; j++) {
            const size_t at = j * columns + k;
            const double number = (j < rows ? whole[at] : last[k]) * signs[at];
            for (int l = 0; l < TOGETHER; l++) sum[l] += factor[l][j] * number;
        }
        for (int l = 0; l < TOGETHER; l++) into[l * columns + k] = sum[l];
    }
}

/* Entries `at[row, l]` of H (signs * pad(x)): l rows of one factor of H times the vector as a
   matrix, summed from its first row to its last as BLAS does, then dots with rows of the other.
   Four entries go together, so that a number is read once for all of them. What is padded is not
   added: no sum that starts at 0 changes by it, not even the sign of a zero. */
static void F(entries)(const double *x, size_t n, size_t d, const double *signs,
                       const int64_t *at, size_t wanted, const double *left, size_t lefts,
                       const double *right, size_t rights, double *room, double *out) {
    const size_t rows = d / rights, over = d % rights;
    double *last = over ? room : NULL, *product = room + rights;
    size_t low = 0;
    while ((size_t)1 << low < rights) low++;
    for (size_t i = over; i < rights; i++) room[i] = 0.0;
    for (size_t row = 0; row < n; row++) {
        const double *mine = x + row * d, *next = row + 1 < n ? mine + d : NULL;
        for (size_t c = 0; c < over; c++) last[c] = mine[rows * rights + c];
        for (size_t l = 0; l < wanted; l += TOGETHER) {
            const double *factor[TOGETHER], *a[TOGETHER], *b[TOGETHER];
            double found[TOGETHER];
            for (size_t i = 0; i < TOGETHER; i++) {
                const size_t which = l + i < wanted ? l + i : l;
                const size_t entry = (size_t)at[row * wanted + which];
                factor[i] = left + (entry >> low) * lefts;
                a[i] = right + (entry & (rights - 1)) * rights;
                b[i] = product + i * rights;
            }
            F(combine)(factor, rows, mine, last, signs, rights, l ? NULL : next, product);
            F(four_dots)(a, b, rights, found);
            for (size_t i = 0; i < TOGETHER && l + i < wanted; i++) {
                out[row * wanted + l + i] = found[i];
            }
        }
    }
}

#undef ACROSS
#undef SIGNED
