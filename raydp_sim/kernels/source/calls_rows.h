/* Calls from Python of loops over given rows: grouping, sums and transforms. */

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

/* Copy what is grouped already to where `next` says, and say there where it ends. */
static PyObject *py_merge(PyObject *self, PyObject *args) {
    Held held = {.count = 4};
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*w*w*", VIEW(0), &size, VIEW(1), VIEW(2), VIEW(3))) return NULL;
    int fits = width_fits(size);
    const size_t groups = items(&held, 1, 8);
    fits = fits && items(&held, 2, 8) == groups;
    if (fits) {
        const int64_t *sizes = AT(1), *next = AT(2);
        int64_t left = (int64_t)items(&held, 0, (size_t)size);
        const int64_t all = (int64_t)items(&held, 3, (size_t)size);
        for (size_t group = 0; fits && group < groups; group++) {
            fits = sizes[group] >= 0 && sizes[group] <= left && next[group] >= 0 &&
                   next[group] <= all && sizes[group] <= all - next[group];
            left -= sizes[group];
        }
        fits = fits && left == 0;
        if (fits) RUN(merge(AT(0), (size_t)size, sizes, groups, AT(2), AT(3)));
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

/* One number of every row, of floats of either size. */
#define OF_ROWS(NAME)                                                                              \
    static PyObject *py_##NAME(PyObject *self, PyObject *args) {                                   \
        Held held = {.count = 2};                                                                  \
        Py_ssize_t size;                                                                           \
        (void)self;                                                                                \
        if (!PyArg_ParseTuple(args, "y*nw*", VIEW(0), &size, VIEW(1))) return NULL;                \
        int fits = size == 4 || size == 8;                                                         \
        if (fits) {                                                                                \
            const size_t n = items(&held, 1, 8), total = items(&held, 0, (size_t)size);            \
            const size_t d = n ? total / n : 0;                                                    \
            fits = n * d == total;                                                                 \
            if (fits) RUN(NAME(AT(0), (size_t)size, n, d, AT(1)));                                 \
        }                                                                                          \
        return done(&held, fits);                                                                  \
    }
OF_ROWS(squares)
OF_ROWS(largest)
#undef OF_ROWS

static PyObject *py_gathered(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    Py_ssize_t size;
    float scale;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*fw*", VIEW(0), &size, VIEW(1), &scale, VIEW(2))) return NULL;
    int fits = size == 1 || size == 4;
    if (fits) {
        const size_t n = items(&held, 1, 8), total = items(&held, 2, 4), d = n ? total / n : 0;
        const size_t rows = d ? items(&held, 0, (size_t)size) / d : 0;
        const int64_t *at = AT(1);
        fits = n * d == total;
        for (size_t row = 0; fits && row < n; row++) fits = at[row] >= 0 && (size_t)at[row] < rows;
        if (fits) RUN(gathered(AT(0), (size_t)size, d, at, n, scale, AT(2)));
    }
    return done(&held, fits);
}

/* Returns whether all numbers were small enough to be summed. An empty buffer of factors stands for
   ones. */
static PyObject *py_steps(PyObject *self, PyObject *args) {
    Held held = {.count = 3};
    Py_ssize_t size;
    double scale, most;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*ddw*", VIEW(0), &size, VIEW(1), &scale, &most, VIEW(2)))
        return NULL;
    int fits = size == 4 || size == 8, small = 0;
    if (fits) {
        const size_t d = items(&held, 2, 8), total = items(&held, 0, (size_t)size);
        const size_t n = d ? total / d : 0, factors = items(&held, 1, 8);
        fits = n * d == total && (factors == 0 || factors == n);
        if (fits) {
            const Table *set = now;
            PyThreadState *state = PyEval_SaveThread();
            small = set->steps(AT(0), (size_t)size, factors ? AT(1) : NULL, n, d, scale, most,
                               AT(2));
            PyEval_RestoreThread(state);
        }
    }
    PyObject *nothing = done(&held, fits);
    if (nothing == NULL) return NULL;
    Py_DECREF(nothing);
    return PyBool_FromLong(small);
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
               items(&held, 5, 8) == 5 * rights &&
               items(&held, 6, 8) == n * (size_t)wanted;
        for (size_t i = 0; fits && i < n * (size_t)wanted; i++) {
            fits = at[i] >= 0 && (size_t)at[i] < full;
        }
        if (fits) {
            RUN(entries(AT(0), n, (size_t)d, AT(1), at, (size_t)wanted, AT(3), lefts, AT(4), rights,
                        AT(5), AT(6)));
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
