/* The Walsh-Hadamard transform of one row in place, from the longest stride to the shortest.

   Included for REAL double and float. Every sum and difference is that of the textbook's loop, only
   three strides are done while the numbers are in registers. */

#ifdef VECTORS
typedef REAL T(Vector) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)),
                                      may_alias));
#endif

/* Three strides at once: 4 eighth, 2 eighth, eighth. */
static void T(eights)(REAL *RESTRICT x, size_t eighth) {
    for (size_t i = 0; i < eighth; i++) {
        REAL *RESTRICT at = x + i;
        const REAL a0 = at[0] + at[4 * eighth], a4 = at[0] - at[4 * eighth];
        const REAL a1 = at[eighth] + at[5 * eighth], a5 = at[eighth] - at[5 * eighth];
        const REAL a2 = at[2 * eighth] + at[6 * eighth], a6 = at[2 * eighth] - at[6 * eighth];
        const REAL a3 = at[3 * eighth] + at[7 * eighth], a7 = at[3 * eighth] - at[7 * eighth];
        const REAL b0 = a0 + a2, b2 = a0 - a2, b1 = a1 + a3, b3 = a1 - a3;
        const REAL b4 = a4 + a6, b6 = a4 - a6, b5 = a5 + a7, b7 = a5 - a7;
        at[0] = b0 + b1, at[eighth] = b0 - b1;
        at[2 * eighth] = b2 + b3, at[3 * eighth] = b2 - b3;
        at[4 * eighth] = b4 + b5, at[5 * eighth] = b4 - b5;
        at[6 * eighth] = b6 + b7, at[7 * eighth] = b6 - b7;
    }
}

static void T(twos)(REAL *RESTRICT x, size_t half) {
    for (size_t i = 0; i < half; i++) {
        const REAL a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
    }
}

#ifdef VECTORS
/* The strides inside a vector: a number plus its partner, or the partner minus it. */
static void T(inside)(REAL *x, size_t full) {
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
    for (size_t i = 0; i < full; i += LANES) {
        T(Vector) v = *(T(Vector) *)(x + i);
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
        *(T(Vector) *)(x + i) = v;
    }
}
#endif

static void T(transform)(REAL *x, size_t full) {
    size_t length = full; /* of a piece whose strides are still to come */
#ifdef VECTORS
    const size_t least = full >= LANES ? LANES : 1;
#else
    const size_t least = 1;
#endif
    while (length > least) {
        if (length >= 8 * least) {
            for (size_t at = 0; at < full; at += length) T(eights)(x + at, length / 8);
            length /= 8;
        } else {
            for (size_t at = 0; at < full; at += length) T(twos)(x + at, length / 2);
            length /= 2;
        }
    }
#ifdef VECTORS
    if (least == LANES) T(inside)(x, full);
#endif
}

static void T(transforms)(REAL *x, size_t n, size_t full) {
    for (size_t row = 0; row < n; row++) T(transform)(x + row * full, full);
}

#undef REAL
#undef LANES
#undef T
