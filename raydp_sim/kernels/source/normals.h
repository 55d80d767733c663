/* Standard normals, one SFC64 generator per row, as NumPy's Generator.standard_normal draws them.

   Eight rows are drawn side by side. A draw that a layer's edge rejects, about 1 in 90, is settled
   for its row alone; the others wait, so that all stay at the same column. */

#define ROWS 8
#define STAGED 64 /* columns kept before they are written row by row */

/* SFC64 (Doty-Humphrey), the last word its counter. */
static inline uint64_t F(sfc64)(uint64_t *s) {
    const uint64_t word = s[0] + s[1] + s[3]++;
    s[0] = s[1] ^ (s[1] >> 11);
    s[1] = s[2] + (s[2] << 3);
    s[2] = ((s[2] << 24) | (s[2] >> 40)) + word;
    return word;
}

static inline void F(begin_sfc64)(uint64_t *s, uint64_t a, uint64_t b, uint64_t c) {
    s[0] = a;
    s[1] = b;
    s[2] = c;
    s[3] = 1;
    for (int i = 0; i < 12; i++) F(sfc64)(s);
}

static inline double F(fraction)(uint64_t *s) { return (double)(F(sfc64)(s) >> 11) * 0x1p-53; }

static inline double F(whole)(uint64_t word) {
    /* Exact for numbers below 2^52, and a vector of it is two operations everywhere. */
    const uint64_t bits = word | 0x4330000000000000u;
    double number;
    memcpy(&number, &bits, sizeof number);
    return number - 0x1p52;
}

/* Go on from a first word that may have been rejected, until a normal is found. */
static double F(settle)(uint64_t *s, uint64_t word) {
    for (;;) {
        const int layer = (int)(word & 0xff);
        const uint64_t size = (word >> 9) & 0x000fffffffffffffu;
        double x = F(whole)(size) * WIDTH[layer];
        if (word & 0x100) x = -x;
        if (size < INSIDE[layer]) return x;
        if (layer == 0) {
            for (;;) {
                const double xx = -INVERSE_TAIL * log1p(-F(fraction)(s));
                const double yy = -log1p(-F(fraction)(s));
                if (yy + yy > xx * xx) {
                    return (size >> 8) & 1 ? -(TAIL + xx) : TAIL + xx;
                }
            }
        }
        const double above = (HEIGHT[layer - 1] - HEIGHT[layer]) * F(fraction)(s) + HEIGHT[layer];
        if (above < exp(-0.5 * x * x)) return x;
        word = F(sfc64)(s);
    }
}

/* The generators of eight rows, word by word. */
typedef struct {
    ALIGNED(64) uint64_t word[4][ROWS];
} F(Eight);

static double F(settle_row)(F(Eight) *of, int row, uint64_t word) {
    uint64_t s[4] = {of->word[0][row], of->word[1][row], of->word[2][row], of->word[3][row]};
    const double x = F(settle)(s, word);
    for (int i = 0; i < 4; i++) of->word[i][row] = s[i];
    return x;
}

#if INSTRUCTIONS == 512
#include <immintrin.h>

static void F(stage)(F(Eight) *of, size_t columns, double *RESTRICT staged) {
    __m512i s0 = _mm512_load_si512(of->word[0]), s1 = _mm512_load_si512(of->word[1]);
    __m512i s2 = _mm512_load_si512(of->word[2]), s3 = _mm512_load_si512(of->word[3]);
    const __m512i one = _mm512_set1_epi64(1), low = _mm512_set1_epi64(0xff);
    const __m512i mantissa = _mm512_set1_epi64(0x000fffffffffffff);
    const __m512i exponent = _mm512_set1_epi64(0x4330000000000000);
    const __m512i sign = _mm512_set1_epi64((long long)0x8000000000000000u);
    const __m512d shift = _mm512_set1_pd(0x1p52);
    for (size_t c = 0; c < columns; c++) {
        const __m512i word = _mm512_add_epi64(_mm512_add_epi64(s0, s1), s3);
        s3 = _mm512_add_epi64(s3, one);
        s0 = _mm512_xor_si512(s1, _mm512_srli_epi64(s1, 11));
        s1 = _mm512_add_epi64(s2, _mm512_slli_epi64(s2, 3));
        s2 = _mm512_add_epi64(_mm512_rol_epi64(s2, 24), word);
        const __m512i layer = _mm512_and_si512(word, low);
        const __m512i size = _mm512_and_si512(_mm512_srli_epi64(word, 9), mantissa);
        const __m512d width = _mm512_i64gather_pd(layer, WIDTH, 8);
        const __m512i inside = _mm512_i64gather_epi64(layer, INSIDE, 8);
        __m512d x = _mm512_sub_pd(_mm512_castsi512_pd(_mm512_or_si512(size, exponent)), shift);
        x = _mm512_mul_pd(x, width);
        const __m512i turned = _mm512_and_si512(_mm512_slli_epi64(word, 55), sign);
        x = _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(x), turned));
        _mm512_storeu_pd(staged + c * ROWS, x);
        const __mmask8 outside = _mm512_cmpge_epu64_mask(size, inside);
        if (outside) {
            ALIGNED(64) uint64_t words[ROWS];
            _mm512_store_si512(words, word);
            _mm512_store_si512(of->word[0], s0);
            _mm512_store_si512(of->word[1], s1);
            _mm512_store_si512(of->word[2], s2);
            _mm512_store_si512(of->word[3], s3);
            for (int row = 0; row < ROWS; row++) {
                if (outside >> row & 1) {
                    staged[c * ROWS + row] = F(settle_row)(of, row, words[row]);
                }
            }
            s0 = _mm512_load_si512(of->word[0]);
            s1 = _mm512_load_si512(of->word[1]);
            s2 = _mm512_load_si512(of->word[2]);
            s3 = _mm512_load_si512(of->word[3]);
        }
    }
    _mm512_store_si512(of->word[0], s0);
    _mm512_store_si512(of->word[1], s1);
    _mm512_store_si512(of->word[2], s2);
    _mm512_store_si512(of->word[3], s3);
}
#else
static void F(stage)(F(Eight) *of, size_t columns, double *RESTRICT staged) {
    for (size_t c = 0; c < columns; c++) {
        ALIGNED(64) uint64_t words[ROWS], outside[ROWS];
        uint64_t any = 0;
        for (int row = 0; row < ROWS; row++) {
            const uint64_t s1 = of->word[1][row], s2 = of->word[2][row];
            const uint64_t word = of->word[0][row] + s1 + of->word[3][row];
            of->word[3][row] += 1;
            of->word[0][row] = s1 ^ (s1 >> 11);
            of->word[1][row] = s2 + (s2 << 3);
            of->word[2][row] = ((s2 << 24) | (s2 >> 40)) + word;
            words[row] = word;
        }
        for (int row = 0; row < ROWS; row++) {
            const uint64_t word = words[row], size = (word >> 9) & 0x000fffffffffffffu;
            const double x = F(whole)(size) * WIDTH[word & 0xff];
            uint64_t bits;
            memcpy(&bits, &x, sizeof bits);
            bits ^= (word << 55) & 0x8000000000000000u;
            memcpy(staged + c * ROWS + row, &bits, sizeof bits);
            outside[row] = size >= INSIDE[word & 0xff];
            any |= outside[row];
        }
        if (any) {
            for (int row = 0; row < ROWS; row++) {
                if (outside[row]) staged[c * ROWS + row] = F(settle_row)(of, row, words[row]);
            }
        }
    }
}
#endif

/* Draw up to eight rows; those that are wanted less are drawn again and dropped. */
static void F(eight_normals)(const uint32_t *ids, int rows, size_t draws, Key key, double *out) {
    ALIGNED(64) double staged[STAGED * ROWS];
    F(Eight) of;
    for (int row = 0; row < ROWS; row++) {
        uint32_t x0[3], x1[3] = {0, 1, 2};
        uint64_t s[4], start[3];
        for (int i = 0; i < 3; i++) x0[i] = ids[row < rows ? row : 0];
        F(encrypt)(x0, x1, 3, key);
        for (int i = 0; i < 3; i++) start[i] = (uint64_t)x0[i] << 32 | x1[i];
        F(begin_sfc64)(s, start[0], start[1], start[2]);
        for (int i = 0; i < 4; i++) of.word[i][row] = s[i];
    }
    for (size_t first = 0; first < draws; first += STAGED) {
        const size_t columns = draws - first < STAGED ? draws - first : STAGED;
        F(stage)(&of, columns, staged);
        for (int row = 0; row < rows; row++) {
            double *RESTRICT to = out + (size_t)row * draws + first;
            for (size_t c = 0; c < columns; c++) to[c] = staged[c * ROWS + row];
        }
    }
}

static void F(normals)(const uint32_t *ids, size_t n, size_t draws, Key key, double *out) {
    for (size_t row = 0; row < n; row += ROWS) {
        const int rows = n - row < ROWS ? (int)(n - row) : ROWS;
        F(eight_normals)(ids + row, rows, draws, key, out + row * draws);
    }
}
