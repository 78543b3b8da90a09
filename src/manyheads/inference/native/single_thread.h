/* The functions of thread_pool.h where there is one thread, as in WebAssembly. */

#pragma once

#include "workers.h"

static void barrier(Worker worker) { (void)worker; }

static void parallel_run(int threads, Job *job, const void *argument) {
    (void)threads;
    job((Worker){0, 1, 0}, argument);
}
