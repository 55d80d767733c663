/* The Python side of the loops: take buffers, check that their sizes fit, and call one set.

   Types and shapes are checked in Python before (kernels/compiled.py); the sizes are checked here
   as well, so that no caller can make C read or write outside of a buffer. Only the limited API is
   used, so one binary serves every Python from 3.11 on. */

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include "common.h"
#include "ziggurat.h"

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define CHOICE 1
#endif

/* The set that the compiler takes by default: SSE2 on x86-64. */
#define F(name) name##_baseline
#define INSTRUCTIONS 0
static const char F(text)[] = "baseline";
#include "isa.h"

#ifdef CHOICE
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define F(name) name##_avx2
#define INSTRUCTIONS 256
static const char F(text)[] = "avx2";
#include "isa.h"
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))),      \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#endif
#define F(name) name##_avx512
#define INSTRUCTIONS 512
static const char F(text)[] = "avx512";
#include "isa.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* Slowest first; `found` of them run on this machine, and `now` is the one in use. */
static const Table *tables[3];
static int found;
static const Table *now;

static void look(void) {
    found = 0;
    tables[found++] = &table_baseline;
#ifdef CHOICE
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) tables[found++] = &table_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        tables[found++] = &table_avx512;
    }
#endif
    now = tables[found - 1];
}

static PyObject *sets(PyObject *self, PyObject *unused) {
    PyObject *names = PyTuple_New(found);
    (void)self, (void)unused;
    if (names == NULL) return NULL;
    for (int i = 0; i < found; i++) {
        PyObject *name = PyUnicode_FromString(tables[i]->name);
        if (name == NULL || PyTuple_SetItem(names, i, name) < 0) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyObject *use(PyObject *self, PyObject *args) {
    const char *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    for (int i = 0; i < found; i++) {
        if (strcmp(tables[i]->name, name) == 0) {
            now = tables[i];
            Py_RETURN_NONE;
        }
    }
    PyErr_Format(PyExc_ValueError, "this machine has no instruction set '%s'", name);
    return NULL;
}

/* Buffers of one call, given back together. */
#define MOST_BUFFERS 8
typedef struct {
    Py_buffer view[MOST_BUFFERS];
    int count;
} Held;

static PyObject *done(Held *held, int fits) {
    for (int i = 0; i < held->count; i++) PyBuffer_Release(&held->view[i]);
    if (PyErr_Occurred()) return NULL;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "sizes of arrays do not fit each other");
        return NULL;
    }
    Py_RETURN_NONE;
}

static size_t items(const Held *held, int which, size_t bytes) {
    return (size_t)held->view[which].len / bytes;
}

#define AT(which) (held.view[which].buf)
#define VIEW(which) (&held.view[which])
#define RUN(call)                                                                                  \
    do {                                                                                           \
        const Table *set = now;                                                                    \
        PyThreadState *state = PyEval_SaveThread();                                                \
        set->call;                                                                                 \
        PyEval_RestoreThread(state);                                                               \
    } while (0)

static PyObject *py_encrypt(PyObject *self, PyObject *args) {
    Held held = {.count = 2};
    Key key;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIw*w*", &key.first, &key.second, VIEW(0), VIEW(1))) return NULL;
    const size_t n = items(&held, 0, 4);
    const int fits = items(&held, 1, 4) == n;
    if (fits) RUN(encrypt(AT(0), AT(1), n, key));
    return done(&held, fits);
}

static PyObject *py_words(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    Key key;
    Py_ssize_t draws;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*nw*w*", &key.first, &key.second, VIEW(0), &draws, VIEW(1),
                          VIEW(2)))
        return NULL;
    const size_t n = items(&held, 0, 4), total = n * (size_t)draws;
    const int fits = draws >= 0 && items(&held, 1, 4) == total && items(&held, 2, 4) == total;
    if (fits) RUN(words(AT(0), n, (size_t)draws, key, AT(1), AT(2)));
    return done(&held, fits);
}

static PyObject *py_uniforms(PyObject *self, PyObject *args) {
    Held held = {.count = 2};
    Key key;
    Py_ssize_t draws;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*nw*", &key.first, &key.second, VIEW(0), &draws, VIEW(1)))
        return NULL;
    const size_t n = items(&held, 0, 4);
    const int fits = draws >= 0 && items(&held, 1, 8) == n * (size_t)draws;
    if (fits) RUN(uniforms(AT(0), n, (size_t)draws, key, AT(1)));
    return done(&held, fits);
}

static PyObject *py_normals(PyObject *self, PyObject *args) {
    Held held = {.count = 2};
    Key key;
    Py_ssize_t draws;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*nw*", &key.first, &key.second, VIEW(0), &draws, VIEW(1)))
        return NULL;
    const size_t n = items(&held, 0, 4);
    const int fits = draws >= 0 && items(&held, 1, 8) == n * (size_t)draws;
    if (fits) RUN(normals(AT(0), n, (size_t)draws, key, AT(1)));
    return done(&held, fits);
}

static PyObject *py_sample(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    Key key;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*y*w*", &key.first, &key.second, VIEW(0), VIEW(1), VIEW(2)))
        return NULL;
    const size_t n = items(&held, 0, 4), draws = items(&held, 1, 8);
    const int fits = items(&held, 2, 8) == n * draws;
    if (fits) RUN(sample(AT(0), n, draws, key, AT(1), AT(2)));
    return done(&held, fits);
}

/* An empty buffer of offsets stands for zeros. */
static PyObject *py_toss(PyObject *self, PyObject *args) {
    Held held = {.count = 6};
    Key key;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*y*y*y*y*w*", &key.first, &key.second, VIEW(0), VIEW(1),
                          VIEW(2), VIEW(3), VIEW(4), VIEW(5)))
        return NULL;
    const size_t n = items(&held, 0, 4), draws = items(&held, 3, 8), total = n * draws;
    const size_t size = total ? (size_t)held.view[5].len / total : 1;
    const int zeros = items(&held, 1, 8) == 0;
    const int fits = (zeros || items(&held, 1, 8) == total) && items(&held, 2, 8) == total &&
                     items(&held, 4, 8) == draws && (size == 1 || size == 2 || size == 4) &&
                     (size_t)held.view[5].len == size * total;
    if (fits) {
        RUN(toss(AT(0), n, draws, key, zeros ? NULL : AT(1), AT(2), AT(3), AT(4), size, AT(5)));
    }
    return done(&held, fits);
}

/* Returns how many bytes are left undecided. */
static PyObject *py_coins(PyObject *self, PyObject *args) {
    Held held = {.count = 5};
    Key key, more;
    Py_ssize_t octets;
    size_t ties = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIIIy*ny*y*y*w*", &key.first, &key.second, &more.first,
                          &more.second, VIEW(0), &octets, VIEW(1), VIEW(2), VIEW(3), VIEW(4)))
        return NULL;
    const size_t n = items(&held, 0, 4);
    const int fits = octets >= 0 && held.view[1].len == 65536 && held.view[2].len == 65536 &&
                     items(&held, 3, 8) == 255 &&
                     (size_t)held.view[4].len == n * (size_t)octets;
    if (fits) {
        const Table *set = now;
        PyThreadState *state = PyEval_SaveThread();
        ties = set->coins(AT(0), n, (size_t)octets, key, more, AT(1), AT(2), AT(3), AT(4));
        PyEval_RestoreThread(state);
    }
    PyObject *none = done(&held, fits);
    if (none == NULL) return NULL;
    Py_DECREF(none);
    return PyLong_FromSize_t(ties);
}

static PyObject *py_buckets(PyObject *self, PyObject *args) {
    Held held = {.count = 2};
    Key key;
    Py_ssize_t draws;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*nw*", &key.first, &key.second, VIEW(0), &draws, VIEW(1)))
        return NULL;
    const size_t n = items(&held, 0, 4);
    const int fits = draws >= 0 && items(&held, 1, 10) == n * (size_t)draws;
    if (fits) RUN(buckets(AT(0), n, (size_t)draws, key, AT(1)));
    return done(&held, fits);
}

static int width_fits(Py_ssize_t width) { return width == 1 || width == 2 || width == 4; }

/* An empty buffer of indices stands for zeros. */
static PyObject *py_tally(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    Py_ssize_t width, rows;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*nnw*", VIEW(0), VIEW(1), &width, &rows, VIEW(2))) return NULL;
    int fits = width_fits(width) && rows > 0;
    if (fits) {
        const size_t n = items(&held, 1, (size_t)width), cells = items(&held, 2, 8);
        const int alone = items(&held, 0, 8) == 0;
        fits = (alone || items(&held, 0, 8) == n) && cells % (size_t)rows == 0;
        if (fits) {
            const Table *set = now;
            PyThreadState *state = PyEval_SaveThread();
            fits = set->tally(alone ? NULL : AT(0), AT(1), (size_t)width, n, (size_t)rows,
                              cells / (size_t)rows, AT(2));
            PyEval_RestoreThread(state);
        }
    }
    return done(&held, fits);
}

static PyObject *py_mark(PyObject *self, PyObject *args) {
    Held held = {.count = 2};
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*", VIEW(0), VIEW(1))) return NULL;
    const size_t n = items(&held, 1, 8), total = items(&held, 0, 1), octets = n ? total / n : 0;
    int fits = n * octets == total;
    if (fits) {
        const Table *set = now;
        PyThreadState *state = PyEval_SaveThread();
        fits = set->mark(AT(0), n, octets, AT(1));
        PyEval_RestoreThread(state);
    }
    return done(&held, fits);
}

/* Group rows: fills `sizes`, uses `next` up, and moves `given`, or row numbers for 8 bytes each. */
static PyObject *py_group(PyObject *self, PyObject *args) {
    Held held = {.count = 5};
    Py_ssize_t width, size;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*nw*w*y*nw*", VIEW(0), &width, VIEW(1), VIEW(2), VIEW(3), &size,
                          VIEW(4)))
        return NULL;
    int fits = width_fits(width) && (width_fits(size) || size == 8);
    if (fits) {
        const size_t n = items(&held, 0, (size_t)width), groups = items(&held, 1, 8);
        const int numbers = size == 8;
        fits = items(&held, 2, 8) == groups && (size_t)held.view[4].len == n * (size_t)size &&
               (numbers || held.view[3].len == held.view[4].len);
        if (fits) {
            const Table *set = now;
            int64_t *counts = AT(1), *next = AT(2), total = 0;
            PyThreadState *state = PyEval_SaveThread();
            fits = set->sizes(AT(0), (size_t)width, n, groups, counts);
            if (fits) {
                for (size_t group = 0; group < groups; group++) {
                    next[group] = total;
                    total += counts[group];
                }
                set->place(AT(0), (size_t)width, n, next, numbers ? NULL : AT(3), (size_t)size,
                           AT(4));
            }
            PyEval_RestoreThread(state);
        }
    }
    return done(&held, fits);
}

static PyObject *py_shuffle(PyObject *self, PyObject *args) {
    Held held = {.count = 4};
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*ny*y*y*", VIEW(0), &size, VIEW(1), VIEW(2), VIEW(3))) return NULL;
    int fits = width_fits(size) || size == 8;
    const size_t groups = items(&held, 1, 8);
    fits = fits && items(&held, 2, 8) == groups && items(&held, 3, 24) == groups;
    if (fits) {
        const int64_t *starts = AT(1), *lengths = AT(2);
        const int64_t all = (int64_t)items(&held, 0, (size_t)size);
        for (size_t group = 0; group < groups; group++) {
            fits = fits && starts[group] >= 0 && starts[group] <= all && lengths[group] >= 0 &&
                   lengths[group] <= all - starts[group] && lengths[group] < INT64_C(0xffffffff);
        }
        if (fits) RUN(shuffles(AT(0), (size_t)size, starts, lengths, groups, AT(3)));
    }
    return done(&held, fits);
}

static PyObject *py_dots(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*w*", VIEW(0), VIEW(1), VIEW(2))) return NULL;
    const size_t n = items(&held, 2, 8), total = items(&held, 0, 8), d = n ? total / n : 0;
    const int fits = items(&held, 1, 8) == total && n * d == total;
    if (fits) RUN(dots(AT(0), AT(1), n, d, AT(2)));
    return done(&held, fits);
}

static PyObject *py_turned(PyObject *self, PyObject *args) {
    Held held = {.count = 5};
    Key key;
    double length;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*y*y*y*dw*", &key.first, &key.second, VIEW(0), VIEW(1),
                          VIEW(2), VIEW(3), &length, VIEW(4)))
        return NULL;
    const size_t n = items(&held, 0, 4), total = items(&held, 1, 8), d = n ? total / n : 0;
    const int fits = n * d == total && (total || !n) && items(&held, 2, 1) == n &&
                     items(&held, 3, 1) == n && items(&held, 4, 8) == total;
    if (fits) RUN(turned(AT(0), n, d, key, AT(1), AT(2), AT(3), length, AT(4)));
    return done(&held, fits);
}

static PyObject *py_leaned(PyObject *self, PyObject *args) {
    Held held = {.count = 7};
    Key key;
    double shortest;
    int exact;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIy*y*y*dy*y*pw*w*", &key.first, &key.second, VIEW(0), VIEW(1),
                          VIEW(2), &shortest, VIEW(3), VIEW(4), &exact, VIEW(5), VIEW(6)))
        return NULL;
    const size_t n = items(&held, 0, 4), total = items(&held, 1, 8), d = n ? total / n : 0;
    const int fits = n * d == total && (total || !n) && items(&held, 2, 8) == n &&
                     items(&held, 3, 8) == n && items(&held, 4, 8) == n &&
                     items(&held, 5, 8) == 8 * d && items(&held, 6, 8) == total;
    if (fits) {
        RUN(leaned(AT(0), n, d, key, AT(1), AT(2), shortest, AT(3), AT(4), exact, AT(5), AT(6)));
    }
    return done(&held, fits);
}

static int power(size_t number) { return number && (number & (number - 1)) == 0; }

static PyObject *py_entries(PyObject *self, PyObject *args) {
    Held held = {.count = 7};
    Py_ssize_t d, wanted;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*y*ny*y*w*w*", VIEW(0), &d, VIEW(1), VIEW(2), &wanted,
                          VIEW(3), VIEW(4), VIEW(5), VIEW(6)))
        return NULL;
    const size_t full = items(&held, 1, 8), left = items(&held, 3, 8), right = items(&held, 4, 8);
    size_t lefts = 1, rights = 1;
    while (lefts * lefts < left) lefts *= 2;
    while (rights * rights < right) rights *= 2;
    int fits = d > 0 && wanted > 0 && power(full) && (size_t)d <= full && lefts * lefts == left &&
               rights * rights == right && lefts * rights == full;
    if (fits) {
        const size_t n = items(&held, 0, 8) / (size_t)d;
        const int64_t *at = AT(2);
        fits = items(&held, 0, 8) == n * (size_t)d && items(&held, 2, 8) == n * (size_t)wanted &&
               items(&held, 5, 8) == full + (size_t)wanted * rights &&
               items(&held, 6, 8) == n * (size_t)wanted;
        for (size_t i = 0; fits && i < n * (size_t)wanted; i++) {
            fits = at[i] >= 0 && (size_t)at[i] < full;
        }
        if (fits) {
            RUN(entries(AT(0), n, (size_t)d, AT(1), full, at, (size_t)wanted, AT(3), lefts, AT(4),
                        rights, AT(5), AT(6)));
        }
    }
    return done(&held, fits);
}

static PyObject *py_coefficients(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    int rounds;
    double cut;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*idy*", VIEW(0), VIEW(1), &rounds, &cut, VIEW(2))) return NULL;
    const size_t total = items(&held, 0, 8), full = items(&held, 2, 8);
    const int fits = power(full) && items(&held, 1, 8) == total && total % full == 0;
    if (fits) RUN(coefficients(AT(0), AT(1), total / full, full, rounds, cut, AT(2)));
    return done(&held, fits);
}

static PyObject *py_hadamard(PyObject *self, PyObject *args) {
    Held held = {.count = 1};
    Py_ssize_t full, size;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*nn", VIEW(0), &full, &size)) return NULL;
    int fits = full > 0 && power((size_t)full) && (size == 4 || size == 8);
    if (fits) {
        const size_t total = items(&held, 0, (size_t)size), n = total / (size_t)full;
        fits = n * (size_t)full == total;
        if (fits && size == 8) RUN(transforms_double(AT(0), n, (size_t)full));
        if (fits && size == 4) RUN(transforms_float(AT(0), n, (size_t)full));
    }
    return done(&held, fits);
}

static PyMethodDef methods[] = {
    {"sets", sets, METH_NOARGS, "Instruction sets of this machine, slowest first."},
    {"use", use, METH_VARARGS, "Use one of them."},
    {"encrypt", py_encrypt, METH_VARARGS, NULL},
    {"words", py_words, METH_VARARGS, NULL},
    {"uniforms", py_uniforms, METH_VARARGS, NULL},
    {"normals", py_normals, METH_VARARGS, NULL},
    {"sample", py_sample, METH_VARARGS, NULL},
    {"toss", py_toss, METH_VARARGS, NULL},
    {"coins", py_coins, METH_VARARGS, NULL},
    {"buckets", py_buckets, METH_VARARGS, NULL},
    {"tally", py_tally, METH_VARARGS, NULL},
    {"mark", py_mark, METH_VARARGS, NULL},
    {"group", py_group, METH_VARARGS, NULL},
    {"shuffle", py_shuffle, METH_VARARGS, NULL},
    {"dots", py_dots, METH_VARARGS, NULL},
    {"turned", py_turned, METH_VARARGS, NULL},
    {"leaned", py_leaned, METH_VARARGS, NULL},
    {"entries", py_entries, METH_VARARGS, NULL},
    {"coefficients", py_coefficients, METH_VARARGS, NULL},
    {"hadamard", py_hadamard, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) {
    look();
    return PyModule_Create(&module);
}
