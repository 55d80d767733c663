/* Every loop for one instruction set: included once for each, with F naming its functions. */

#if INSTRUCTIONS == 512
#define REGISTER 64
#elif INSTRUCTIONS == 256
#define REGISTER 32
#else
#define REGISTER 16
#endif

#include "threefry.h"

#include "normals.h"

#include "shuffle.h"

#include "draws.h"
#include "rows.h"
#include "sums.h"

#include "softmax.h"

#define REAL double
#define LANES (REGISTER / 8)
#define T(name) F(name##_double)
#include "hadamard.h"

#define REAL float
#define LANES (REGISTER / 4)
#define T(name) F(name##_float)
#include "hadamard.h"

#include "frames.h"

/* In the order of common.h. */
static const Table F(table) = {
    F(text),      F(encrypt),  F(words),        F(uniforms), F(normals),
    F(sample),    F(toss),     F(picked),       F(coins),    F(buckets),
    F(dealt),     F(tally),     F(mark),     F(sizes),        F(place),    F(merge),
    F(dots),      F(shuffles), F(turned),       F(leaned),   F(entries),
    F(coefficients), F(transforms_double), F(transforms_float),
    F(squares),   F(steps),    F(largest),      F(gathered),
    F(softmax),
};

#undef BLOCK
#undef ROWS
#undef STAGED
#undef TOGETHER
#undef PIECE
#undef STRIP
#undef REGISTER
#undef F
#undef INSTRUCTIONS
