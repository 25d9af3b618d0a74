/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/sim.h - whole programs on a simulated network, in virtual time, from a seed (libweir-sim).
 *
 *      static int program(weir_sim *sim, void *arg)
 *      {
 *          weir_sim_host *server_host, *client_host;
 *          weir_sim_process *server, *client;
 *          int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);
 *
 *          if (!err) err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
 *          if (!err) err = weir_sim_start(server_host, "server", server_main, arg, &server);
 *          if (!err) err = weir_sim_start(client_host, "client", client_main, arg, &client);
 *          if (!err) err = weir_sim_join(client);
 *          if (!err) weir_sim_signal(server, SIGTERM);
 *          return err ? err : weir_sim_join(server);
 *      }
 *
 *      err = weir_sim_run(WEIR_SIM_OPTIONS(.seed = 42), program, NULL, &result);
 *
 * A world is one call of weir_sim_run. It runs in the calling thread. Inside it the API of weir
 * works unchanged: threads that weir starts are fibers of the world, which switches between them in
 * an order drawn from the seed; sockets are those of the simulated network; the clock is virtual
 * and advances only when nothing can run. Waits such as weir_promise_sync and weir_server_run
 * suspend the fiber. The same seed and the same program give the same run, event by event, as long
 * as the program itself depends on nothing else: no threads of its own, no real time, no addresses
 * of memory, no sockets made without weir.
 *
 * One world at a time in a process, and no weir threads beside it. Thread-local variables of the
 * program and of weir's libraries are those of the fiber.
 *
 * A rate is a probability, 0 to 1, unless it says "per second".
 */
#ifndef WEIR_SIM_H
#define WEIR_SIM_H

#include <weir/base.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_sim weir_sim;
typedef struct weir_sim_host weir_sim_host;
typedef struct weir_sim_process weir_sim_process;

/* Kinds of faults. */
enum weir_sim_fault {
    WEIR_SIM_FAULT_ALLOC,       /* an allocation of weir fails */
    WEIR_SIM_FAULT_DESCRIPTORS, /* EMFILE of socket, accept, eventfd */
    WEIR_SIM_FAULT_NO_BUFFERS,  /* ENOBUFS of a send; io_uring: nothing is submitted */
    WEIR_SIM_FAULT_INTERRUPTED, /* EINTR of a receive, send or accept; io_uring: of a wait */
    WEIR_SIM_FAULT_SHORT_READ,  /* a receive returns a part of what is there; io_uring: a multishot
                                   operation ends early */
    WEIR_SIM_FAULT_SHORT_WRITE, /* a send takes a part of what there is room for; io_uring: a part
                                   of the queue is submitted */
    WEIR_SIM_FAULT_SLOW,        /* a thread gets no CPU for up to max_slow_ns */
    WEIR_SIM_FAULT_PREEMPT,     /* another thread runs first */
    WEIR_SIM_FAULT_RESET,       /* per second: a connection is reset */
    WEIR_SIM_FAULT_PARTITION,   /* per second: two hosts cannot reach each other for a while */
    WEIR_SIM_FAULT_HOST_STOP,   /* per second: a host stands still for a while */
    WEIR_SIM_FAULT_DEATH,       /* per second: a process dies; see weir_sim_restart */
    WEIR_SIM_FAULT_CLOCK_STEP,  /* per second: the wall clock of a host jumps, at most a day */
    WEIR_SIM_FAULT_LOSS,        /* a datagram is lost */
    WEIR_SIM_FAULT_DUPLICATE,   /* a datagram arrives twice */
    WEIR_SIM_FAULT_REORDER,     /* a datagram is overtaken */
    WEIR_SIM_FAULT_LOOKUP,      /* a host name cannot be resolved */
    WEIR_SIM_FAULT_COUNT,
};

/*
 * Returns the name of a kind, "alloc", "reset", ...; NULL if there is no such kind.
 * Thread: any.
 */
WEIR_API const char *weir_sim_fault_name(enum weir_sim_fault kind);

/* A fault that happened: the n-th decision about its kind. */
typedef struct weir_sim_fault_event {
    enum weir_sim_fault kind;
    uint64_t number;
    int64_t time_ns; /* virtual time; ignored as input */
} weir_sim_fault_event;

typedef struct weir_sim_network {
    int64_t latency_ns;    /* one way; 0: 100 us */
    int64_t jitter_ns;     /* at most this much more; 0: 400 us */
    int64_t bandwidth;     /* bytes per second and direction; 0: 125,000,000 */
    size_t socket_buffer;  /* bytes of a send or receive buffer; 0: 64 KiB */
    size_t max_segment;    /* bytes that arrive together, at most; 0: 16 KiB */
    unsigned max_datagram; /* larger datagrams fail with EMSGSIZE; 0: 65,507 */
    unsigned backlog;      /* limit of listen, as net.core.somaxconn; 0: 4,096 */
    unsigned ports;        /* ephemeral ports of a host; 0: 28,232 */
} weir_sim_network;

typedef struct weir_sim_options {
    size_t size;
    uint64_t seed;
    weir_sim_network network;
    double rates[WEIR_SIM_FAULT_COUNT]; /* 0: no such faults; PREEMPT: 0 is 0.05, negative is 0 */
    int64_t max_slow_ns;                /* 0: 50 ms */
    int64_t max_outage_ns;              /* of partitions and stopped hosts; 0: 5 s */
    int64_t max_time_ns;                /* virtual time after which the run fails; 0: 1 day */
    uint64_t max_steps;       /* switches between fibers after which it fails; 0: 50 million */
    unsigned max_descriptors; /* of a process; 0: 4,096 */

    /* Only these faults happen, of those that the seed and the rates give. For reductions. */
    const weir_sim_fault_event *only_faults;
    size_t only_fault_count; /* with only_faults == NULL: all happen */

    /*
     * Runs the world in a child process: a failure does not spoil the caller's process, and a crash
     * or a hang is a failure of the run. The program's changes to memory are lost.
     */
    bool isolated;
    int64_t max_real_ns; /* real time that an isolated run may take; 0: 30 s */

    unsigned trace_length; /* events that the result's trace has at most; 0: 200 */

    /* Called for each event, as text, in order; for printing. May be NULL. */
    void (*on_trace)(const char *line, void *user_data);
    void *user_data;

    /*
     * Loops whose .io is WEIR_IO_AUTO or WEIR_IO_URING run on a simulated io_uring, which completes
     * operations. All other loops, and without it all, poll for readiness.
     */
    bool uring;
} weir_sim_options;

#define WEIR_SIM_OPTIONS(...) WEIR_OPTIONS(weir_sim_options, __VA_ARGS__)

/* The outcome of a run. */
typedef struct weir_sim_result {
    uint64_t hash;   /* of all events: equal for equal runs */
    uint64_t events; /* number of events */
    uint64_t steps;  /* switches between fibers */
    int64_t time_ns; /* virtual duration */
    char *failure;   /* what went wrong first; NULL = the run passed */
    char *trace;     /* the last events before the failure, a line each; NULL = passed */
    weir_sim_fault_event *faults; /* that happened, in order */
    size_t fault_count;
} weir_sim_result;

/*
 * The program of a world, on a host of its own called "world". It creates hosts and starts
 * processes. The world ends when it returns and all processes have ended. A negative result is a
 * failure of the run.
 */
typedef int weir_sim_program_fn(weir_sim *sim, void *arg);

/* The main function of a simulated process. A negative result is a failure of the run, unless the
 * process was killed. */
typedef int weir_sim_main_fn(void *arg);

/*
 * Runs a program in a world. These checks are always on: every fiber, descriptor, message, timer
 * and block of memory is gone at the end; no fiber waits for ever (a deadlock is reported with what
 * each one waits for); virtual time advances; what a stream delivers is what was written to it.
 * Thread: any that runs no loop.  Gives: ret_result, also on WEIR_ESIM.  Fails: WEIR_ESIM (the run
 * failed: see ret_result->failure), -EBUSY (another world runs, or one has failed: see .isolated),
 * -EDEADLK, -EINVAL, -ENOMEM, -ENOTSUP (linked with -static and glibc; .uring without liburing).
 */
WEIR_API WEIR_MUST_USE int weir_sim_run(const weir_sim_options *options,
                                        weir_sim_program_fn *program, void *arg,
                                        weir_sim_result *ret_result);

/*
 * Frees the texts and lists of a result, and resets it.
 * Thread: any.
 */
WEIR_API void weir_sim_result_free(weir_sim_result *result);

/*
 * Finds fewer faults that still make the run fail, by bisection: runs the program repeatedly, each
 * time with some of the faults of `failed`, which must be the result of an isolated run with the
 * same options. Each attempt is isolated; at most `max_attempts` are made, 0: 500. `on_attempt`,
 * unless NULL, is called after each attempt with the faults that are left.
 * Thread: as weir_sim_run.  Gives: ret_result, the smallest run that fails.  Fails: as
 * weir_sim_run; -EINVAL if the run does not fail again.
 */
WEIR_API WEIR_MUST_USE int
weir_sim_reduce(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                const weir_sim_result *failed, unsigned max_attempts,
                void (*on_attempt)(unsigned attempt, size_t faults_left, void *user_data),
                weir_sim_result *ret_result);

/* ---- inside a world; all of these are called on its fibers ---- */

/*
 * Returns the world that the caller runs in, or NULL.
 * Thread: any.
 */
WEIR_API weir_sim *weir_sim_current(void);

/*
 * The virtual time since the start of the world.
 * Thread: a fiber.
 */
WEIR_API int64_t weir_sim_now(weir_sim *sim);

/*
 * Suspends the calling fiber for a virtual duration.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_sleep(int64_t duration_ns);

/*
 * A number below `limit`, drawn from the seed. `limit` is not 0.
 * Thread: a fiber.
 */
WEIR_API uint64_t weir_sim_random(weir_sim *sim, uint64_t limit);

/*
 * Adds an event of the program to the trace. It counts for the hash.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_note(weir_sim *sim, const char *format, ...) WEIR_PRINTF(2, 3);

/*
 * Fails the run; the first failure counts. The world stops at the next switch between fibers.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_fail(weir_sim *sim, const char *format, ...) WEIR_PRINTF(2, 3);

typedef void weir_sim_check_fn(weir_sim *sim, bool at_end, void *arg);

/*
 * Adds a check of the program's own. It is called after every event and at the end, when everything
 * has ended (`at_end`), and calls weir_sim_fail if something is wrong. It must not wait.
 * Thread: a fiber.  Lends until weir_sim_run returns: arg.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_sim_check(weir_sim *sim, weir_sim_check_fn *fn, void *arg);

/*
 * Adds a host with a name that the resolver knows and one or several addresses, separated by
 * blanks: "10.0.0.1 fd00::1". It exists until the end of the world.
 * Thread: a fiber.  Lends until the end: ret_host.  Fails: -EINVAL, -EADDRINUSE, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_sim_host_create(weir_sim *sim, const char *name,
                                                const char *addresses, weir_sim_host **ret_host);

/*
 * Starts a process on a host: a fiber that calls fn(arg). It exists until the end of the world.
 * Thread: a fiber.  Lends until the end: ret_process (may be NULL).  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_sim_start(weir_sim_host *host, const char *name,
                                          weir_sim_main_fn *fn, void *arg,
                                          weir_sim_process **ret_process);

/*
 * Returns the process that a process has started last, by weir_child_spawn or weir_server_restart;
 * NULL if it has started none. Whatever the arguments say, its program is that of its parent: the
 * main function is called again, with the same argument, in a process of its own that has the
 * passed descriptors and an environment (weir_systemd_listeners, .inherit).
 * Thread: a fiber.
 */
WEIR_API weir_sim_process *weir_sim_child(weir_sim_process *process);

/*
 * Waits until the main function has returned. Returns its result, or 0 if the process was killed.
 * Thread: a fiber.
 */
WEIR_API int weir_sim_join(weir_sim_process *process);

/*
 * True until the main function has returned or the process was killed.
 * Thread: a fiber.
 */
WEIR_API bool weir_sim_is_alive(const weir_sim_process *process);

/*
 * Sends a signal to a process: weir_server_run and weir_signals receive it. Without either it ends
 * nothing.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_signal(weir_sim_process *process, int number);

/*
 * Kills a process as SIGKILL does, as far as anyone outside it can see: its kernel closes all its
 * sockets at once, and nothing that it does from then on reaches the network or a disk. Its fibers
 * clean up behind that wall: every operation of theirs fails, and weir_server_run receives SIGTERM.
 * So a main function must end when its operations fail and weir_sim_is_dying() is true.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_kill(weir_sim_process *process);

/*
 * True in a process that was killed.
 * Thread: a fiber.
 */
WEIR_API bool weir_sim_is_dying(void);

/*
 * Starts the process again `delay_ns` after each time that WEIR_SIM_FAULT_DEATH or weir_sim_kill
 * has killed it. Only such processes die by that fault. A negative delay stops that, also for a
 * process that is dead now.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_restart(weir_sim_process *process, int64_t delay_ns);

/*
 * Stops all fibers of a host, and lets them continue.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_host_stop(weir_sim_host *host);
WEIR_API void weir_sim_host_continue(weir_sim_host *host);

/*
 * Separates two hosts, or connects them again: what one sends to the other is lost. TCP sends it
 * again later.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_partition(weir_sim_host *a, weir_sim_host *b, bool separated);

/*
 * Sets the network between two hosts, in both directions. Fields that are 0 keep their value.
 * Thread: a fiber.  Fails: -ENOMEM.
 */
WEIR_API int weir_sim_set_link(weir_sim_host *a, weir_sim_host *b, const weir_sim_network *network);

/*
 * Moves the wall clock of a host.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_step_clock(weir_sim_host *host, int64_t delta_ns);

/*
 * Stops all faults that rates cause, so that a program can end in peace: partitions heal, stopped
 * hosts continue. False starts them again.
 * Thread: a fiber.
 */
WEIR_API void weir_sim_calm(weir_sim *sim, bool calm);

/*
 * The disk of the caller's host: bytes that survive the death of processes. Appends and reads are
 * whole: a process that is killed has written all of an append or nothing.
 * Thread: a fiber.  Fails: -EIO (the process was killed), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_sim_disk_append(const void *bytes, size_t length);

/*
 * Reads up to `size` bytes at an offset. Returns the number, 0 at the end.
 * Thread: a fiber.
 */
WEIR_API size_t weir_sim_disk_read(size_t offset, void *ret_bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
