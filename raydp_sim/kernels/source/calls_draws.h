/* Calls from Python of loops that draw: words, uniforms, normals, numbers, bits and coins. */

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

static PyObject *py_picked(PyObject *self, PyObject *args) {
    Held held = {.count = 7};
    Key index, key;
    double shift, scale;
    Py_ssize_t bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIIIy*y*ny*y*ddy*y*w*", &index.first, &index.second, &key.first,
                          &key.second, VIEW(0), VIEW(1), &bytes, VIEW(2), VIEW(3), &shift, &scale,
                          VIEW(4), VIEW(5), VIEW(6)))
        return NULL;
    const size_t n = items(&held, 0, 4), draws = items(&held, 2, 8), total = n * draws;
    const size_t each = bytes == 4 ? 4 : 8, d = n ? items(&held, 1, each) / n : 0;
    const size_t size = total ? (size_t)held.view[6].len / total : 1;
    int fits = items(&held, 1, each) == n * d && items(&held, 3, 8) == draws &&
               items(&held, 4, 8) == draws && items(&held, 5, 8) == draws &&
               (size == 1 || size == 2 || size == 4) &&
               (size_t)held.view[6].len == size * total;
    const int64_t *starts = AT(2);
    const double *high = AT(3);
    /* Every coordinate that can be drawn is one of the row's. */
    for (size_t i = 0; fits && n && i < draws; i++) {
        fits = starts[i] >= 0 && high[i] >= 1.0 && high[i] <= 0x1p31 &&
               (double)starts[i] + high[i] <= (double)d;
    }
    if (fits) {
        RUN(picked(AT(0), n, draws, index, key, AT(1), each, d, starts, high, shift, scale, AT(4),
                   AT(5), size, AT(6)));
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

static PyObject *py_dealt(PyObject *self, PyObject *args) {
    Held held = {.count = 1};
    Key key;
    uint32_t first;
    Py_ssize_t clients, messages, width;
    int apart;
    (void)self;
    if (!PyArg_ParseTuple(args, "IIInnpnw*", &key.first, &key.second, &first, &clients, &messages,
                          &apart, &width, VIEW(0)))
        return NULL;
    const int sound = clients >= 0 && clients <= (Py_ssize_t)UINT32_MAX && messages >= 1 &&
                      messages <= 1 << 16 && (width == 1 || width == 2 || width == 4);
    const int fits = sound && items(&held, 0, (size_t)width) == (size_t)clients * (size_t)messages;
    if (fits) {
        RUN(dealt(first, (size_t)clients, (size_t)messages, apart, key, (size_t)width, AT(0)));
    }
    return done(&held, fits);
}
