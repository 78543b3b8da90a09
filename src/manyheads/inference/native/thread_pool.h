/* A thread pool: parallel_run has several threads execute the same function, each for its share of the work.

   OpenMP's threads spin for milliseconds at every barrier and between two parallel regions. If another program needs
   the core, the thread that the others wait for cannot run: beside two busy programs on two cores a step took 16 ms
   instead of 0.2. The threads of this pool sleep after some microseconds, and a woken thread gets a core soon. Where
   waking takes longer than the work, one thread alone is faster: parallel_run measures both.

   Threads sleep on a futex on Linux and on a condition variable elsewhere (or with -DNO_FUTEX). */

#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "workers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE()
#endif

#if defined(__linux__) && !defined(NO_FUTEX)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static void wake_all(atomic_uint *value) { syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0); }
static void sleep_while(atomic_uint *value, unsigned expected) {
    syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0);
}
static void reset_sleep(void) {}
#else
static pthread_mutex_t sleep_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_condition = PTHREAD_COND_INITIALIZER;
static void wake_all(atomic_uint *value) {
    (void)value; /* all events share one condition variable: a thread that was woken for another event sleeps again */
    pthread_mutex_lock(&sleep_mutex);
    pthread_cond_broadcast(&sleep_condition);
    pthread_mutex_unlock(&sleep_mutex);
}
static void sleep_while(atomic_uint *value, unsigned expected) {
    pthread_mutex_lock(&sleep_mutex);
    while (atomic_load(value) == expected) pthread_cond_wait(&sleep_condition, &sleep_mutex);
    pthread_mutex_unlock(&sleep_mutex);
}
static void reset_sleep(void) {
    pthread_mutex_init(&sleep_mutex, 0);
    pthread_cond_init(&sleep_condition, 0);
}
#endif

#define SPINS_AT_BARRIER 1000 /* before a thread sleeps: some 15 microseconds */
#define SPINS_FOR_JOB 10000
#define TRIAL_JOBS 4
#define MAX_THREADS 32
#define JOB_SIZES 64 /* a power of 2 above MAX_THREADS */

/* A recurring event: the number of the last occurrence, and how many threads sleep until the next. */
typedef struct {
    atomic_uint generation, sleepers;
} Event;

static void signal_event(Event *event, unsigned generation) {
    atomic_store(&event->generation, generation);
    if (atomic_load(&event->sleepers)) wake_all(&event->generation);
}

static _Thread_local int64_t spin_count; /* spins of this thread so far */

/* Wait until the event has another generation than `generation`: spin at first, then sleep. Return the new one. */
static unsigned wait_for_event(Event *event, unsigned generation, int spins) {
    unsigned now;
    for (; spins > 0; spins--, spin_count++) {
        if ((now = atomic_load(&event->generation)) != generation) return now;
        PAUSE();
    }
    atomic_fetch_add(&event->sleepers, 1);
    while ((now = atomic_load(&event->generation)) == generation) sleep_while(&event->generation, generation);
    atomic_fetch_sub(&event->sleepers, 1);
    return now;
}

typedef struct Barrier {
    Event event;
    atomic_int arrived;
} Barrier;

/* Wait until all workers of the job have arrived. */
static void barrier(Worker worker) {
    Barrier *shared = worker.barrier;
    if (worker.count == 1) return;
    const unsigned generation = atomic_load(&shared->event.generation);
    if (atomic_fetch_add(&shared->arrived, 1) == worker.count - 1) {
        atomic_store(&shared->arrived, 0);
        signal_event(&shared->event, generation + 1);
    } else
        wait_for_event(&shared->event, generation, SPINS_AT_BARRIER);
}

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER; /* held while a job is executed */
static Event job_event; /* generation: the number of the job times JOB_SIZES, plus its number of workers */
static Barrier pool_barrier;
static Job *current_job;
static const void *current_argument;
static int spawned; /* threads of the pool */

static void *pool_thread(void *argument) {
    const int id = (int)(intptr_t)argument;
    unsigned generation = 0;
    for (;;) {
        generation = wait_for_event(&job_event, generation, SPINS_FOR_JOB);
        const Worker worker = {id, (int)(generation % JOB_SIZES), &pool_barrier};
        if (id >= worker.count) continue;
        current_job(worker, current_argument);
        barrier(worker);
    }
    return 0;
}

/* Reset the pool in the child of a fork, which has no other threads. */
static void after_fork(void) {
    spawned = 0;
    atomic_store(&job_event.generation, 0);
    atomic_store(&job_event.sleepers, 0);
    atomic_store(&pool_barrier.event.sleepers, 0);
    atomic_store(&pool_barrier.arrived, 0);
    pthread_mutex_init(&pool_mutex, 0);
    reset_sleep();
}

/* Start one more thread, with all signals blocked; return whether it could be started. */
static int spawn(void) {
    static int registered;
    pthread_t thread;
    sigset_t all, before;
    if (!registered) registered = pthread_atfork(0, 0, after_fork) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, 0, pool_thread, (void *)(intptr_t)(spawned + 1));
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (failed) return 0;
    pthread_detach(thread);
    spawned++;
    return 1;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Return the processor time of a spin in seconds, measured once: it differs tenfold between processors. */
static double seconds_per_spin(void) {
    static double measured;
    if (measured == 0) {
        atomic_uint value = 0;
        const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int spin = 0; spin < SPINS_AT_BARRIER && !atomic_load(&value); spin++) PAUSE();
        measured = (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / SPINS_AT_BARRIER;
    }
    return measured;
}

/* Seconds of work that all threads together do in a second: running means over some jobs. */
static double parallel_speed = 2, serial_speed = 1;
static double next_trial;    /* when to try several threads again, while one thread is faster */
static double trial_seconds; /* duration of the current or last trial */
static int trial_jobs_left;  /* of the current trial; its first job wakes the threads and says little */

/* Return whether several threads are to execute the next job. */
static int use_threads(double now) {
    if (parallel_speed < serial_speed && trial_jobs_left > 0) return trial_jobs_left--;
    trial_seconds = 0;
    if (parallel_speed >= serial_speed) return 1;
    if (now >= next_trial) trial_jobs_left = TRIAL_JOBS - 1;
    return now >= next_trial;
}

/* Record the speed of a job: its wall time, and the time that the caller worked in it. */
static void record_speed(int threads, double end, double wall, double worked) {
    const double speed = threads * worked / wall;
    if (threads == 1)
        serial_speed += (speed - serial_speed) / 4;
    else {
        parallel_speed += ((speed < threads ? speed : threads) - parallel_speed) / 4;
        serial_speed += (1 - serial_speed) / 100; /* towards that of a free core, unless measured again */
        trial_seconds += wall;
        next_trial = end + 20 * trial_seconds; /* trials take a twentieth of the time at most */
    }
}

/* Execute a job by up to `threads` threads, the caller among them. There is one pool: while it executes the job of
   another caller, this caller executes its job alone. */
static void parallel_run(int threads, Job *job, const void *argument) {
    const Worker alone = {0, 1, 0};
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads < 2 || pthread_mutex_trylock(&pool_mutex) != 0) {
        job(alone, argument);
        return;
    }
    const double spin = seconds_per_spin(), start = seconds(CLOCK_MONOTONIC);
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID) - spin * (double)spin_count;
    if (!use_threads(start)) threads = 1;
    while (spawned + 1 < threads && spawn()) {}
    const int count = spawned + 1 < threads ? spawned + 1 : threads;
    if (count > 1) {
        const Worker caller = {0, count, &pool_barrier};
        current_job = job;
        current_argument = argument;
        const unsigned generation = atomic_load(&job_event.generation);
        signal_event(&job_event, (generation / JOB_SIZES + 1) * JOB_SIZES + (unsigned)count);
        job(caller, argument);
        barrier(caller);
    } else
        job(alone, argument);
    const double end = seconds(CLOCK_MONOTONIC);
    record_speed(count, end, end - start, seconds(CLOCK_THREAD_CPUTIME_ID) - spin * (double)spin_count - before);
    pthread_mutex_unlock(&pool_mutex);
}
