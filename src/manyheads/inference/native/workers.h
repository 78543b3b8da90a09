/* The workers of a job, and the share of each. */

#pragma once

#include <stdint.h>

/* A thread that executes a job: its number, and the number of threads. */
typedef struct {
    int id, count;
    struct Barrier *barrier;
} Worker;

typedef void Job(Worker worker, const void *argument);

typedef struct {
    int64_t first, last; /* last is excluded */
} Range;

static int64_t share_start(Worker worker, int id, int64_t total, int64_t unit) {
    const int64_t first = (total * id / worker.count + unit - 1) / unit * unit;
    return first < total ? first : total;
}

/* Return this worker's share of `total` items, which begins at a multiple of `unit`. */
static Range share(Worker worker, int64_t total, int64_t unit) {
    return (Range){share_start(worker, worker.id, total, unit), share_start(worker, worker.id + 1, total, unit)};
}
