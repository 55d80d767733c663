/* Softmax regression in one pass over each client's samples: logits, loss, gradient. A client's
   samples stay in the second cache, and no row that is still to come is waited for.

   Every sum has one order, whatever the registers are like: inner products of sixteen sums, of
   which halves are added; gradients sample by sample. */

#define LANE 16
#define CLASSES 5 /* that go together */

#if VECTORS
#define INLINED static inline __attribute__((always_inline)) /* with constant counts */
typedef float F(floats) __attribute__((vector_size(REGISTER), aligned(4), may_alias));
#define WIDE (REGISTER / 4)
#define AT_ONCE (REGISTER == 64 ? 4 : 2) /* samples, or registers of columns: sums fill the rest */
#define LOAD(from) (*(const F(floats) *)(from))
#define STORE(to, what) (*(F(floats) *)(to) = (what))

/* Inner products of some samples with some classes. */
INLINED void F(products)(const float *x, const float *w, size_t d, size_t samples,
                                 size_t classes, float found[AT_ONCE][CLASSES][LANE]) {
    for (size_t part = 0; part < LANE; part += WIDE) {
        F(floats) sums[AT_ONCE][CLASSES];
        for (size_t i = 0; i < samples; i++) {
            for (size_t k = 0; k < classes; k++) sums[i][k] = (F(floats)){0};
        }
        for (size_t c = part; c < d; c += LANE) {
#pragma GCC unroll 8
            for (size_t k = 0; k < classes; k++) {
                const F(floats) weight = LOAD(w + k * d + c);
#pragma GCC unroll 8
                for (size_t i = 0; i < samples; i++) sums[i][k] += LOAD(x + i * d + c) * weight;
            }
        }
        for (size_t i = 0; i < samples; i++) {
            for (size_t k = 0; k < classes; k++) STORE(found[i][k] + part, sums[i][k]);
        }
    }
}

/* Sums over samples of slope times feature, for some classes and columns. */
INLINED void F(outer)(const float *x, size_t d, const float *slopes, size_t s,
                              size_t classes, size_t registers, float *to, size_t apart) {
    F(floats) sums[CLASSES][AT_ONCE];
    for (size_t k = 0; k < classes; k++) {
        for (size_t r = 0; r < registers; r++) sums[k][r] = (F(floats)){0};
    }
    for (size_t i = 0; i < s; i++) {
#pragma GCC unroll 8
        for (size_t k = 0; k < classes; k++) {
#pragma GCC unroll 8
            for (size_t r = 0; r < registers; r++) {
                sums[k][r] += slopes[k * s + i] * LOAD(x + i * d + r * WIDE);
            }
        }
    }
    for (size_t k = 0; k < classes; k++) {
        for (size_t r = 0; r < registers; r++) STORE(to + k * apart + r * WIDE, sums[k][r]);
    }
}
#else
#define WIDE LANE
#define AT_ONCE 1
static void F(products)(const float *x, const float *w, size_t d, size_t samples, size_t classes,
                        float found[AT_ONCE][CLASSES][LANE]) {
    for (size_t i = 0; i < samples; i++) {
        for (size_t k = 0; k < classes; k++) {
            for (size_t lane = 0; lane < LANE; lane++) found[i][k][lane] = 0.0f;
            for (size_t c = 0; c < d; c += LANE) {
                for (size_t lane = 0; lane < LANE; lane++) {
                    found[i][k][lane] += x[i * d + c + lane] * w[k * d + c + lane];
                }
            }
        }
    }
}

static void F(outer)(const float *x, size_t d, const float *slopes, size_t s, size_t classes,
                     size_t registers, float *to, size_t apart) {
    const size_t columns = registers * WIDE;
    for (size_t k = 0; k < classes; k++) {
        for (size_t c = 0; c < columns; c++) to[k * apart + c] = 0.0f;
        for (size_t i = 0; i < s; i++) {
            for (size_t c = 0; c < columns; c++) to[k * apart + c] += slopes[k * s + i] * x[i * d + c];
        }
    }
}
#endif

/* Logits of some samples, at z[class * s + sample]; with constant arguments. */
#define LOGITS(SAMPLES, TOGETHER)                                                                  \
    do {                                                                                           \
        float found[AT_ONCE][CLASSES][LANE];                                                       \
        F(products)(x + i * wide, w + k * wide, wide, SAMPLES, TOGETHER, found);                   \
        for (size_t a = 0; a < (SAMPLES); a++) {                                                   \
            for (size_t b = 0; b < (TOGETHER); b++) {                                              \
                float *sum = found[a][b];                                                          \
                for (size_t half = LANE / 2; half; half /= 2) {                                    \
                    for (size_t lane = 0; lane < half; lane++) sum[lane] += sum[half + lane];      \
                }                                                                                  \
                z[(k + b) * s + i + a] = sum[0] + bias[k + b];                                     \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void F(logits)(const float *x, const float *w, const float *bias, size_t wide, size_t first,
                      size_t last, size_t s, size_t classes, float *z) {
    size_t i = first;
    for (; i + AT_ONCE <= last; i += AT_ONCE) {
        size_t k = 0;
        for (; k + CLASSES <= classes; k += CLASSES) LOGITS(AT_ONCE, CLASSES);
        for (; k < classes; k++) LOGITS(AT_ONCE, 1);
    }
    for (; i < last; i++) {
        size_t k = 0;
        for (; k + CLASSES <= classes; k += CLASSES) LOGITS(1, CLASSES);
        for (; k < classes; k++) LOGITS(1, 1);
    }
}
#undef LOGITS

/* e^x for x <= 0 (Cephes' expf), 0 below -64; what is no number stays so. */
static inline float F(power)(float x) {
    const float low = x > -64.0f ? x : -64.0f, round = 12582912.0f;
    const float whole = (low * 1.44269504088896341f + round) - round;
    const float r = (low - whole * 0.693359375f) - whole * -2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = (y * (r * r) + r) + 1.0f;
    const int32_t bits = ((int32_t)whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    y *= scale;
    y = x > -64.0f ? y : 0.0f;
    return x == x ? y : x;
}

/* Turn logits into slopes of the weighted loss; see `plain.softmax`. */
static void F(slopes)(float *RESTRICT z, const int64_t *labels, const float *RESTRICT weights,
                      size_t s, size_t classes, float *RESTRICT most, float *RESTRICT total,
                      float *RESTRICT below, uint8_t *right) {
    for (size_t i = 0; i < s; i++) most[i] = z[i];
    for (size_t k = 1; k < classes; k++) {
        for (size_t i = 0; i < s; i++) most[i] = z[k * s + i] > most[i] ? z[k * s + i] : most[i];
    }
    for (size_t i = 0; i < s; i++) {
        const size_t own = (size_t)labels[i];
        below[i] = z[own * s + i] - most[i];
        right[i] = below[i] == 0.0f;
        for (size_t k = 0; k < own; k++) right[i] &= z[k * s + i] != most[i]; /* the first counts */
    }
    for (size_t i = 0; i < s; i++) total[i] = 0.0f;
    for (size_t k = 0; k < classes; k++) {
        for (size_t i = 0; i < s; i++) {
            z[k * s + i] = F(power)(z[k * s + i] - most[i]);
            total[i] += z[k * s + i];
        }
    }
    for (size_t k = 0; k < classes; k++) {
        for (size_t i = 0; i < s; i++) z[k * s + i] /= total[i];
    }
    for (size_t i = 0; i < s; i++) z[(size_t)labels[i] * s + i] -= 1.0f;
    for (size_t k = 0; k < classes; k++) {
        for (size_t i = 0; i < s; i++) z[k * s + i] *= weights[i];
    }
}

static void F(row)(const void *pool, size_t size, size_t d, size_t wide, int64_t at, float scale,
                   float *RESTRICT to) {
    const char *from = (const char *)pool + (size_t)at * d * size;
    if (size == 4) {
        memcpy(to, from, d * sizeof *to);
    } else {
        const uint8_t *RESTRICT bytes = (const uint8_t *)from;
        for (size_t c = 0; c < d; c++) to[c] = (float)bytes[c] * scale;
    }
    for (size_t c = d; c < wide; c++) to[c] = 0.0f;
}

#define AHEAD 4 /* samples */
static void F(softmax)(const void *pool, size_t size, size_t d, float scale, const int64_t *at,
                       const int64_t *labels, const float *weights, size_t n, size_t s,
                       const float *theta, size_t apart, size_t classes, float *room, float *found,
                       float *total, float *below, uint8_t *right) {
    const size_t wide = (d + LANE - 1) / LANE * LANE, all = classes * (d + 1);
    float *x = room, *w = x + s * wide, *z = w + classes * wide, *most = z + classes * s;
    for (size_t row = 0; row < n; row++) {
        const float *own = theta + row * apart, *bias = own + classes * d;
        float *to = found + row * all;
        if (row == 0 || apart) {
            for (size_t k = 0; k < classes; k++) F(row)(own, 4, d, wide, (int64_t)k, 1.0f, w + k * wide);
        }
        for (size_t first = 0; first < s; first += AHEAD) {
            const size_t last = first + AHEAD < s ? first + AHEAD : s;
            for (size_t i = first; i < last; i++) {
                const size_t now = row * s + i;
                if (now + AHEAD < n * s) {
                    const char *next = (const char *)pool + (size_t)at[now + AHEAD] * d * size;
                    for (size_t byte = 0; byte < d * size; byte += 64) PREFETCH(next + byte);
                }
                F(row)(pool, size, d, wide, at[now], scale, x + i * wide);
            }
            F(logits)(x, w, bias, wide, first, last, s, classes, z);
        }
        F(slopes)(z, labels + row * s, weights + row * s, s, classes, most, total + row * s,
                  below + row * s, right + row * s);
        size_t c = 0;
        for (; c + AT_ONCE * WIDE <= d; c += AT_ONCE * WIDE) {
            size_t k = 0;
            for (; k + CLASSES <= classes; k += CLASSES) {
                F(outer)(x + c, wide, z + k * s, s, CLASSES, AT_ONCE, to + k * d + c, d);
            }
            for (; k < classes; k++) F(outer)(x + c, wide, z + k * s, s, 1, AT_ONCE, to + k * d + c, d);
        }
        for (; c < d; c += WIDE) {
            float some[WIDE];
            for (size_t k = 0; k < classes; k++) {
                F(outer)(x + c, wide, z + k * s, s, 1, 1, some, 0);
                memcpy(to + k * d + c, some, (c + WIDE < d ? WIDE : d - c) * sizeof *some);
            }
        }
        for (size_t k = 0; k < classes; k++) {
            float sum = 0.0f;
            for (size_t i = 0; i < s; i++) sum += z[k * s + i];
            to[classes * d + k] = sum;
        }
    }
}
#undef LANE
#undef INLINED
#undef CLASSES
#undef WIDE
#undef AT_ONCE
#undef AHEAD
#undef LOAD
#undef STORE
