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

/* Sum rows of a matrix, each times its factor, from the first to the last. */
static void F(combine)(const double *factor, size_t rows, const double *RESTRICT matrix,
                       size_t columns, double *RESTRICT into) {
    size_t k = 0;
#ifdef VECTORS
    enum { wide = REGISTER / 8 };
    for (; k + 4 * wide <= columns; k += 4 * wide) {
        F(Vector_double) sum[4] = {{0}, {0}, {0}, {0}};
        for (size_t j = 0; j < rows; j++) {
            const double *from = matrix + j * columns + k;
            for (int i = 0; i < 4; i++) {
                sum[i] += factor[j] * *(const F(Vector_double) *)(from + i * wide);
            }
        }
        for (int i = 0; i < 4; i++) *(F(Vector_double) *)(into + k + i * wide) = sum[i];
    }
#endif
    for (; k < columns; k++) {
        double sum = 0.0;
        for (size_t j = 0; j < rows; j++) sum += factor[j] * matrix[j * columns + k];
        into[k] = sum;
    }
}

/* Entries `at[row, l]` of H (signs * pad(x)): l rows of one factor of H times the vector as a
   matrix, summed from its first row to its last as BLAS does, then dots with rows of the other. */
static void F(entries)(const double *x, size_t n, size_t d, const double *signs, size_t full,
                       const int64_t *at, size_t wanted, const double *left, size_t lefts,
                       const double *right, size_t rights, double *room, double *out) {
    double *flipped = room, *product = room + full;
    size_t low = 0;
    while ((size_t)1 << low < rights) low++;
    for (size_t i = d; i < full; i++) flipped[i] = 0.0;
    for (size_t row = 0; row < n; row++) {
        const double *RESTRICT mine = x + row * d;
        for (size_t c = 0; c < d; c++) flipped[c] = mine[c] * signs[c];
        for (size_t l = 0; l < wanted; l++) {
            const size_t entry = (size_t)at[row * wanted + l];
            F(combine)(left + (entry >> low) * lefts, lefts, flipped, rights, product + l * rights);
        }
        for (size_t l = 0; l < wanted; l += TOGETHER) {
            const double *a[TOGETHER], *b[TOGETHER];
            double found[TOGETHER];
            for (size_t i = 0; i < TOGETHER; i++) {
                const size_t which = l + i < wanted ? l + i : l;
                const size_t entry = (size_t)at[row * wanted + which];
                a[i] = right + (entry & (rights - 1)) * rights;
                b[i] = product + which * rights;
            }
            F(four_dots)(a, b, rights, found);
            for (size_t i = 0; i < TOGETHER && l + i < wanted; i++) {
                out[row * wanted + l + i] = found[i];
            }
        }
    }
}
