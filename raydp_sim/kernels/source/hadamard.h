/* The Walsh-Hadamard transform of one row in place, from the longest stride to the shortest.

   Included for REAL double and float. Every sum and difference is that of the textbook's loop, only
   three strides are done while the numbers are in registers. */

#ifdef VECTORS
typedef REAL T(Vector) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)),
                                      may_alias));
#endif

/* Three strides at once, 4 eighth, 2 eighth and eighth, of numbers or of vectors of them. */
#define EIGHTS(Type, step)                                                                         \
    for (size_t i = 0; i < eighth; i += (step)) {                                                  \
        Type *at[8];                                                                               \
        for (int k = 0; k < 8; k++) at[k] = (Type *)(x + i + (size_t)k * eighth);                  \
        const Type a0 = *at[0] + *at[4], a4 = *at[0] - *at[4];                                     \
        const Type a1 = *at[1] + *at[5], a5 = *at[1] - *at[5];                                     \
        const Type a2 = *at[2] + *at[6], a6 = *at[2] - *at[6];                                     \
        const Type a3 = *at[3] + *at[7], a7 = *at[3] - *at[7];                                     \
        const Type b0 = a0 + a2, b2 = a0 - a2, b1 = a1 + a3, b3 = a1 - a3;                         \
        const Type b4 = a4 + a6, b6 = a4 - a6, b5 = a5 + a7, b7 = a5 - a7;                         \
        *at[0] = b0 + b1, *at[1] = b0 - b1, *at[2] = b2 + b3, *at[3] = b2 - b3;                    \
        *at[4] = b4 + b5, *at[5] = b4 - b5, *at[6] = b6 + b7, *at[7] = b6 - b7;                    \
    }

static void T(plain_eights)(REAL *x, size_t eighth) { EIGHTS(REAL, 1) }

static void T(plain_twos)(REAL *x, size_t half) {
    for (size_t i = 0; i < half; i++) {
        const REAL a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
    }
}

static void T(plain_transform)(REAL *x, size_t full) {
    size_t length = full; /* of a piece whose strides are still to come */
    for (; length >= 8; length /= 8) {
        for (size_t at = 0; at < full; at += length) T(plain_eights)(x + at, length / 8);
    }
    for (; length >= 2; length /= 2) {
        for (size_t at = 0; at < full; at += length) T(plain_twos)(x + at, length / 2);
    }
}

#ifdef VECTORS
static void T(eights)(REAL *x, size_t eighth) { EIGHTS(T(Vector), LANES) }

/* The strides inside a vector: a number plus its partner, or the partner minus it. */
static inline T(Vector) T(inside)(T(Vector) v) {
#if LANES == 16
    const T(Vector) sign8 = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
    const T(Vector) sign4 = {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1};
    const T(Vector) sign2 = {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1};
    const T(Vector) sign1 = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
#elif LANES == 8
    const T(Vector) sign4 = {1, 1, 1, 1, -1, -1, -1, -1};
    const T(Vector) sign2 = {1, 1, -1, -1, 1, 1, -1, -1};
    const T(Vector) sign1 = {1, -1, 1, -1, 1, -1, 1, -1};
#elif LANES == 4
    const T(Vector) sign2 = {1, 1, -1, -1};
    const T(Vector) sign1 = {1, -1, 1, -1};
#else
    const T(Vector) sign1 = {1, -1};
#endif
#if LANES == 16
    v = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7) +
        v * sign8;
    v = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11) +
        v * sign4;
    v = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13) +
        v * sign2;
    v = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14) +
        v * sign1;
#elif LANES == 8
    v = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3) + v * sign4;
    v = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5) + v * sign2;
    v = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6) + v * sign1;
#elif LANES == 4
    v = __builtin_shufflevector(v, v, 2, 3, 0, 1) + v * sign2;
    v = __builtin_shufflevector(v, v, 1, 0, 3, 2) + v * sign1;
#else
    v = __builtin_shufflevector(v, v, 1, 0) + v * sign1;
#endif
    return v;
}

/* The last strides of pieces of `count` vectors, then those inside each. */
static inline __attribute__((always_inline)) void T(ends)(REAL *x, size_t full, const int count) {
    for (size_t i = 0; i < full; i += (size_t)count * LANES) {
        T(Vector) v[8];
        for (int k = 0; k < count; k++) v[k] = *(T(Vector) *)(x + i + (size_t)k * LANES);
        for (int half = count / 2; half; half /= 2) {
            for (int k = 0; k < count; k++) {
                if (k & half) continue;
                const T(Vector) a = v[k], b = v[k + half];
                v[k] = a + b;
                v[k + half] = a - b;
            }
        }
        for (int k = 0; k < count; k++) *(T(Vector) *)(x + i + (size_t)k * LANES) = T(inside)(v[k]);
    }
}

static void T(transform)(REAL *x, size_t full) {
    size_t length = full; /* of a piece whose strides are still to come */
    if (full < LANES) {
        T(plain_transform)(x, full);
        return;
    }
    for (; length > 8 * LANES; length /= 8) {
        for (size_t at = 0; at < full; at += length) T(eights)(x + at, length / 8);
    }
    if (length == 8 * LANES) T(ends)(x, full, 8);
    if (length == 4 * LANES) T(ends)(x, full, 4);
    if (length == 2 * LANES) T(ends)(x, full, 2);
    if (length == LANES) T(ends)(x, full, 1);
}
#else
static void T(transform)(REAL *x, size_t full) { T(plain_transform)(x, full); }
#endif

static void T(transforms)(REAL *x, size_t n, size_t full) {
    for (size_t row = 0; row < n; row++) T(transform)(x + row * full, full);
}

#undef EIGHTS
#undef REAL
#undef LANES
#undef T
