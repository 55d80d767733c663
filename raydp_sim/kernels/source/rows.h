/* Inner products of rows in NumPy's order, and the wide vectors of `priv` and `privunit`. */

#define TOGETHER 4 /* rows whose sums are under way at once: each waits for its own last term */
#define PIECE 8192 /* columns summed by themselves, as `plain.dots` does */

/* Four inner products in the order of NumPy's einsum: two sums, of the even and of the odd columns,
   four terms at a time from the last to the first. */
static void F(four_dots)(const double *const *one, const double *const *other, size_t d,
                         double *out) {
    double low[TOGETHER] = {0}, high[TOGETHER] = {0};
    size_t c = 0;
    for (; c + 8 <= d; c += 8) {
        for (int row = 0; row < TOGETHER; row++) {
            const double *a = one[row] + c, *b = other[row] + c;
            for (int pair = 6; pair >= 0; pair -= 2) {
                low[row] = a[pair] * b[pair] + low[row];
                high[row] = a[pair + 1] * b[pair + 1] + high[row];
            }
        }
    }
    for (; c < d; c += 2) {
        for (int row = 0; row < TOGETHER; row++) {
            low[row] = one[row][c] * other[row][c] + low[row];
            if (c + 1 < d) high[row] = one[row][c + 1] * other[row][c + 1] + high[row];
        }
    }
    for (int row = 0; row < TOGETHER; row++) out[row] = low[row] + high[row];
}

static void F(dots)(const double *one, const double *other, size_t n, size_t d, double *out) {
    for (size_t first = 0; first < n; first += TOGETHER) {
        const double *a[TOGETHER], *b[TOGETHER];
        double total[TOGETHER] = {0}, some[TOGETHER];
        const size_t rows = n - first < TOGETHER ? n - first : TOGETHER;
        for (size_t start = 0; start < d; start += PIECE) {
            for (size_t row = 0; row < TOGETHER; row++) {
                const size_t at = (first + (row < rows ? row : 0)) * d + start;
                a[row] = one + at;
                b[row] = other + at;
            }
            F(four_dots)(a, b, d - start < PIECE ? d - start : PIECE, start ? some : total);
            for (size_t row = 0; start && row < TOGETHER; row++) total[row] += some[row];
        }
        for (size_t row = 0; row < rows; row++) out[first + row] = total[row];
    }
}

/* Normals turned to the side of x where `right`, else to the other, of length `length`.
   `sided` says which rows of x have a side; others take that of the first column. */
static void F(turned)(const uint32_t *ids, size_t n, size_t d, Key key, const double *x,
                      const uint8_t *sided, const uint8_t *right, double length, double *out) {
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t rows = n - first < ROWS ? n - first : ROWS;
        double along[ROWS], square[ROWS], *g = out + first * d;
        F(eight_normals)(ids + first, (int)rows, d, key, g);
        F(dots)(g, x + first * d, rows, d, along);
        F(dots)(g, g, rows, d, square);
        for (size_t row = 0; row < rows; row++) {
            double *RESTRICT mine = g + row * d;
            const double side = sided[first + row] ? along[row] : mine[0];
            const double size = sqrt(square[row] > 1e-300 ? square[row] : 1e-300);
            const double factor = ((side > 0.0) == (right[first + row] != 0) ? 1.0 : -1.0) / size;
            for (size_t c = 0; c < d; c++) mine[c] = mine[c] * factor * length;
        }
    }
}

/* Scale (height unit + what is at right angles to it), where unit is x over its size; a row
   shorter than `shortest` has the first axis. `across` is the length of the rest; with `exact` the
   rest is brought to length 1 before. `unit` is room for eight rows. */
static void F(leaned)(const uint32_t *ids, size_t n, size_t d, Key key, const double *x,
                      const double *size, double shortest, const double *height,
                      const double *across, int exact, double *unit, double *out) {
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t rows = n - first < ROWS ? n - first : ROWS;
        double along[ROWS], square[ROWS], *normal = out + first * d;
        F(eight_normals)(ids + first, (int)rows, d, key, normal);
        for (size_t row = 0; row < rows; row++) {
            const double *RESTRICT from = x + (first + row) * d;
            double *RESTRICT to = unit + row * d;
            if (size[first + row] < shortest) {
                memset(to, 0, d * sizeof *to);
                to[0] = 1.0;
            } else {
                const double divisor = size[first + row];
                for (size_t c = 0; c < d; c++) to[c] = from[c] / divisor;
            }
        }
        F(dots)(normal, unit, rows, d, along);
        for (size_t row = 0; row < rows; row++) {
            double *RESTRICT mine = normal + row * d;
            const double *RESTRICT to = unit + row * d;
            for (size_t c = 0; c < d; c++) mine[c] -= along[row] * to[c];
        }
        if (exact) F(dots)(normal, normal, rows, d, square);
        for (size_t row = 0; row < rows; row++) {
            double *RESTRICT mine = normal + row * d;
            const double *RESTRICT to = unit + row * d;
            const double up = height[first + row];
            double rest = across[first + row];
            if (exact) rest /= sqrt(square[row] > 1e-300 ? square[row] : 1e-300);
            for (size_t c = 0; c < d; c++) mine[c] = mine[c] * rest + to[c] * up;
        }
    }
}
