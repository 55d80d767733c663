/* The Python side of loops that train models; included by module.c. */

static PyObject *py_softmax(PyObject *self, PyObject *args) {
    Held held = {.count = 10};
    Py_ssize_t size, width, samples, classes;
    float scale;
    int apart;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*nny*fy*y*y*pnnw*w*w*w*w*", VIEW(0), &size, &width, VIEW(1),
                          &scale, VIEW(2), VIEW(3), VIEW(4), &apart, &samples, &classes, VIEW(5),
                          VIEW(6), VIEW(7), VIEW(8), VIEW(9)))
        return NULL;
    int fits = (size == 1 || size == 4) && width > 0 && samples > 0 && classes > 0;
    if (fits) {
        const size_t d = (size_t)width, s = (size_t)samples, k = (size_t)classes;
        const size_t all = items(&held, 1, 8), n = all / s, rows = items(&held, 0, d * (size_t)size);
        const size_t each = k * (d + 1), wide = (d + 15) / 16 * 16;
        const int64_t *at = AT(1), *labels = AT(2);
        fits = n * s == all && items(&held, 2, 8) == all && items(&held, 3, 4) == all &&
               items(&held, 4, 4) == (apart ? n : 1) * each &&
               items(&held, 5, 4) == (s + k) * wide + (k + 1) * s &&
               items(&held, 6, 4) == n * each && items(&held, 7, 4) == all &&
               items(&held, 8, 4) == all && items(&held, 9, 1) == all;
        for (size_t i = 0; fits && i < all; i++) {
            fits = at[i] >= 0 && (size_t)at[i] < rows && labels[i] >= 0 && (size_t)labels[i] < k;
        }
        if (fits) {
            RUN(softmax(AT(0), (size_t)size, d, scale, at, labels, AT(3), n, s, AT(4),
                        apart ? each : 0, k, AT(5), AT(6), AT(7), AT(8), AT(9)));
        }
    }
    return done(&held, fits);
}
