/* What all loops share: types, the Threefry counter, and the table of one instruction set. */
#ifndef RAYDP_COMMON_H
#define RAYDP_COMMON_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#define RESTRICT __restrict
#define PREFETCH(place) ((void)(place))
#define PREFETCH_WRITE(place) ((void)(place))
#define ALIGNED(bytes) __declspec(align(bytes))
#else
#define RESTRICT __restrict__
#define PREFETCH(place) __builtin_prefetch(place)
#define PREFETCH_WRITE(place) __builtin_prefetch(place, 1)
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#endif

/* Whether the lowest byte of a number comes first. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#else
#define LITTLE 0
#endif

/* Vectors written as such; other compilers take the plain loops, which give the same numbers. */
#if defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define VECTORS 1
#endif
#endif

typedef struct {
    uint32_t first, second;
} Key;

/* Draws of clients in order: the counter is (client, draw). */
typedef struct {
    const uint32_t *ids;
    size_t row, draw, draws;
    Key key;
} Counter;

/* One instruction set's loops. All take whole, checked, C-contiguous arrays. */
typedef struct {
    const char *name;
    void (*encrypt)(uint32_t *x0, uint32_t *x1, size_t n, Key key);
    void (*words)(const uint32_t *ids, size_t n, size_t draws, Key key, uint32_t *high,
                  uint32_t *low);
    void (*uniforms)(const uint32_t *ids, size_t n, size_t draws, Key key, double *out);
    void (*normals)(const uint32_t *ids, size_t n, size_t draws, Key key, double *out);
    void (*sample)(const uint32_t *ids, size_t n, size_t draws, Key key, const double *high,
                   int64_t *out);
    void (*toss)(const uint32_t *ids, size_t n, size_t draws, Key key, const int64_t *offset,
                 const double *chance, const double *flip, const double *gap, size_t size,
                 void *out);
    void (*picked)(const uint32_t *ids, size_t n, size_t draws, Key index, Key key,
                   const void *values, size_t each, size_t d, const int64_t *starts,
                   const double *high, double shift, double scale, const double *flip,
                   const double *gap, size_t size, void *out);
    size_t (*coins)(const uint32_t *ids, size_t n, size_t octets, Key key, Key more,
                    const uint8_t *table, const uint8_t *open, const uint64_t *ends,
                    uint8_t *out);
    void (*buckets)(const uint32_t *ids, size_t n, size_t draws, Key key, uint8_t *out);
    void (*dealt)(uint32_t first, size_t clients, size_t messages, int apart, Key key, size_t width,
                  void *out);
    int (*tally)(const int64_t *index, const void *symbols, size_t width, size_t n, size_t rows,
                 size_t alphabet, int64_t *counts);
    int (*mark)(uint8_t *rows, size_t n, size_t octets, const int64_t *bit);
    int (*sizes)(const void *keys, size_t width, size_t n, size_t groups, int64_t *counts);
    void (*place)(const void *keys, size_t width, size_t n, int64_t *next, const void *given,
                  size_t size, void *out);
    void (*merge)(const void *items, size_t size, const int64_t *sizes, size_t groups,
                  int64_t *next, void *out);
    void (*dots)(const double *one, const double *other, size_t n, size_t d, double *out);
    void (*shuffles)(void *items, size_t size, const int64_t *starts, const int64_t *lengths,
                     size_t groups, const uint64_t *seeds);
    void (*turned)(const uint32_t *ids, size_t n, size_t d, Key key, const double *x,
                   const uint8_t *sided, const uint8_t *right, double length, double *out);
    void (*leaned)(const uint32_t *ids, size_t n, size_t d, Key key, const double *x,
                   const double *size, double shortest, const double *height,
                   const double *across, int exact, double *unit, double *out);
    void (*entries)(const double *x, size_t n, size_t d, const double *signs, const int64_t *at,
                    size_t wanted, const double *left, size_t lefts, const double *right,
                    size_t rights, double *room, double *out);
    void (*coefficients)(double *kept, double *rest, size_t n, size_t full, int rounds, double cut,
                         const double *frame);
    void (*transforms_double)(double *x, size_t n, size_t full);
    void (*transforms_float)(float *x, size_t n, size_t full);
    void (*squares)(const void *x, size_t size, size_t n, size_t d, double *out);
    int (*steps)(const void *x, size_t size, const double *factors, size_t n, size_t d,
                 double scale, double most, double *total);
    void (*largest)(const void *x, size_t size, size_t n, size_t d, double *out);
    void (*gathered)(const void *pool, size_t size, size_t d, const int64_t *at, size_t n,
                     float scale, float *out);
    void (*softmax)(const void *pool, size_t size, size_t d, float scale, const int64_t *at,
                    const int64_t *labels, const float *weights, size_t n, size_t s,
                    const float *theta, size_t apart, size_t classes, float *room, float *found,
                    float *total, float *below, uint8_t *right);
} Table;

#endif
