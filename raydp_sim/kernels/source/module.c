/* The Python side of the loops: take buffers, check that their sizes fit, and call one set.

   Types and shapes are checked in Python before (kernels/compiled/); the sizes are checked here
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
#define MOST_BUFFERS 10
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

#include "calls_draws.h"
#include "calls_rows.h"
#include "calls_models.h"

static PyMethodDef methods[] = {
    {"sets", sets, METH_NOARGS, "Instruction sets of this machine, slowest first."},
    {"use", use, METH_VARARGS, "Use one of them."},
    {"encrypt", py_encrypt, METH_VARARGS, NULL},
    {"words", py_words, METH_VARARGS, NULL},
    {"uniforms", py_uniforms, METH_VARARGS, NULL},
    {"normals", py_normals, METH_VARARGS, NULL},
    {"sample", py_sample, METH_VARARGS, NULL},
    {"toss", py_toss, METH_VARARGS, NULL},
    {"picked", py_picked, METH_VARARGS, NULL},
    {"coins", py_coins, METH_VARARGS, NULL},
    {"buckets", py_buckets, METH_VARARGS, NULL},
    {"dealt", py_dealt, METH_VARARGS, NULL},
    {"tally", py_tally, METH_VARARGS, NULL},
    {"mark", py_mark, METH_VARARGS, NULL},
    {"group", py_group, METH_VARARGS, NULL},
    {"merge", py_merge, METH_VARARGS, NULL},
    {"shuffle", py_shuffle, METH_VARARGS, NULL},
    {"dots", py_dots, METH_VARARGS, NULL},
    {"turned", py_turned, METH_VARARGS, NULL},
    {"leaned", py_leaned, METH_VARARGS, NULL},
    {"entries", py_entries, METH_VARARGS, NULL},
    {"coefficients", py_coefficients, METH_VARARGS, NULL},
    {"squares", py_squares, METH_VARARGS, NULL},
    {"largest", py_largest, METH_VARARGS, NULL},
    {"gathered", py_gathered, METH_VARARGS, NULL},
    {"softmax", py_softmax, METH_VARARGS, NULL},
    {"steps", py_steps, METH_VARARGS, NULL},
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
