/* A team of threads that go through the same work together, each with its share.

   OpenMP's threads stay awake for milliseconds at every barrier and between two regions. Where another program wants
   the core, the one that is waited for cannot run: beside two busy programs on two cores a step took 16 ms instead of
   0.2. These fall asleep after some microseconds, and one that is woken gets a core soon. Where that takes longer than
   the work, and where the work is small, one thread alone is the faster one: `together` measures both. */

#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE()
#endif

#ifdef __linux__
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static void wake(atomic_uint *place) { syscall(SYS_futex, place, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0); }
static void sleep_while(atomic_uint *place, unsigned value) {
    syscall(SYS_futex, place, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}
#else
static void wake(atomic_uint *place) { (void)place; }
static void sleep_while(atomic_uint *place, unsigned value) {
    if (atomic_load(place) == value) sched_yield();
}
#endif

#define AT_A_MEETING 1000 /* looks before a thread falls asleep: some 15 microseconds */
#define FOR_WORK 10000
#define TRIALS 4 /* works */
#define MOST_THREADS 32
#define SIZES 64 /* a power of 2 above it */

/* What changes when threads may go on, and how many of them sleep until it does. */
typedef struct {
    atomic_uint rounds, asleep;
} Gate;

static void open_gate(Gate *gate, unsigned round) {
    atomic_store(&gate->rounds, round);
    if (atomic_load(&gate->asleep)) wake(&gate->rounds);
}

static _Thread_local int64_t looked; /* looks of this thread so far */

/* Wait while the gate is at this round; returns the one that it has come to. */
static unsigned wait_at(Gate *gate, unsigned round, int looks) {
    unsigned now;
    for (; looks > 0; looks--, looked++) {
        if ((now = atomic_load(&gate->rounds)) != round) return now;
        PAUSE();
    }
    atomic_fetch_add(&gate->asleep, 1);
    while ((now = atomic_load(&gate->rounds)) == round) sleep_while(&gate->rounds, round);
    atomic_fetch_sub(&gate->asleep, 1);
    return now;
}

typedef struct {
    Gate gate;
    atomic_int arrived;
} Meeting;

typedef struct {
    int id, size;
    Meeting *meeting;
} Team;

/* The first of the `total` things that a thread takes, in pieces of `unit`. */
static int64_t share(Team team, int id, int64_t total, int64_t unit) {
    int64_t first = (total * id / team.size + unit - 1) / unit * unit;
    return first < total ? first : total;
}

/* Wait until the whole team is here. */
static void meet(Team team) {
    Meeting *meeting = team.meeting;
    if (team.size == 1) return;
    const unsigned round = atomic_load(&meeting->gate.rounds);
    if (atomic_fetch_add(&meeting->arrived, 1) == team.size - 1) {
        atomic_store(&meeting->arrived, 0);
        open_gate(&meeting->gate, round + 1);
    } else
        wait_at(&meeting->gate, round, AT_A_MEETING);
}

typedef void Work(Team team, const void *task);

static pthread_mutex_t turn_of_pool = PTHREAD_MUTEX_INITIALIZER; /* held while there is work */
static Gate work_gate; /* rounds: the number of the work times SIZES, plus the size of its team */
static Meeting meeting_of_pool;
static Work *present_work;
static const void *present_task;
static int hired;

static void *serve(void *given) {
    const int id = (int)(intptr_t)given;
    unsigned round = 0;
    for (;;) {
        round = wait_at(&work_gate, round, FOR_WORK);
        const Team team = {id, (int)(round % SIZES), &meeting_of_pool};
        if (id >= team.size) continue;
        present_work(team, present_task);
        meet(team);
    }
    return 0;
}

/* After a fork there are no other threads, and nobody has the turn. */
static void begin_anew(void) {
    hired = 0;
    atomic_store(&work_gate.rounds, 0);
    atomic_store(&work_gate.asleep, 0);
    atomic_store(&meeting_of_pool.gate.asleep, 0);
    atomic_store(&meeting_of_pool.arrived, 0);
    pthread_mutex_init(&turn_of_pool, 0);
}

/* Start one more thread, which gets no signals; whether there is one. */
static int hire(void) {
    static int told;
    pthread_t thread;
    sigset_t all, before;
    if (!told) told = pthread_atfork(0, 0, begin_anew) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, 0, serve, (void *)(intptr_t)(hired + 1));
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (failed) return 0;
    pthread_detach(thread);
    hired++;
    return 1;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Processor time of a look at a gate that stays closed: what a pause takes differs by ten between processors. */
static double seconds_of_a_look(void) {
    static double found;
    if (found == 0) {
        atomic_uint gate = 0;
        const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int look = 0; look < AT_A_MEETING && !atomic_load(&gate); look++) PAUSE();
        found = (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / AT_A_MEETING;
    }
    return found;
}

/* What threads get done: seconds of work a second, all threads together; running means over some works. */
static double speed_of_team = 2, speed_alone = 1;
static double next_trial; /* when to try the team again, while one thread is faster */
static double tried;      /* seconds that the present or last trial took */
static int trials;        /* works that are left of it: the first wakes the threads and says little */

/* Whether a team is to do the next work. */
static int team_is_faster(double now) {
    if (speed_of_team < speed_alone && trials > 0) return trials--;
    tried = 0;
    if (speed_of_team >= speed_alone) return 1;
    if (now >= next_trial) trials = TRIALS - 1;
    return now >= next_trial;
}

/* Take in what a work of so many threads came to: the time that it took, and that for which the caller worked. */
static void rate(int threads, double end, double wall, double worked) {
    const double speed = threads * worked / wall;
    if (threads == 1)
        speed_alone += (speed - speed_alone) / 4;
    else {
        speed_of_team += ((speed < threads ? speed : threads) - speed_of_team) / 4;
        speed_alone += (1 - speed_alone) / 100; /* as it would be if nothing ran beside it, unless seen again */
        tried += wall;
        next_trial = end + 20 * tried; /* trials take a twentieth of the time at most */
    }
}

/* Have a team of up to so many threads do a work, the caller among them. There is one pool: while another thread's
   work is done, the caller works alone. */
static void together(int threads, Work *work, const void *task) {
    const Team alone = {0, 1, 0};
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads < 2 || pthread_mutex_trylock(&turn_of_pool) != 0) {
        work(alone, task);
        return;
    }
    const double look = seconds_of_a_look(), start = seconds(CLOCK_MONOTONIC);
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID) - look * (double)looked;
    if (!team_is_faster(start)) threads = 1;
    while (hired + 1 < threads && hire()) {}
    const int size = hired + 1 < threads ? hired + 1 : threads;
    if (size > 1) {
        const Team team = {0, size, &meeting_of_pool};
        present_work = work;
        present_task = task;
        const unsigned round = atomic_load(&work_gate.rounds);
        open_gate(&work_gate, (round / SIZES + 1) * SIZES + (unsigned)size);
        work(team, task);
        meet(team);
    } else
        work(alone, task);
    const double end = seconds(CLOCK_MONOTONIC);
    rate(size, end, end - start, seconds(CLOCK_THREAD_CPUTIME_ID) - look * (double)looked - before);
    pthread_mutex_unlock(&turn_of_pool);
}
