/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of a simulation: its fibers, events, hosts and processes.
 *
 *      world.c        weir_sim_run: begin, end, checks
 *      fiber.c        stacks, the switch, thread-local variables
 *      schedule.c     which fiber runs next; events; virtual time
 *      virtual_os.c   threads, futexes, clocks, signals and names of weir, as those of the world
 *      system.c       the table of system calls
 *      backend.c      the I/O backend of simulated loops: readiness
 *      uring.c        the kernel's side of io_uring, for loops on that backend: the queues
 *      uring_op.c     the same: operations
 *      file.c         descriptors of a process; eventfds
 *      network.c      hosts, addresses, links
 *      tcp.c udp.c unix.c   sockets
 *      unix_path.c    files of Unix sockets
 *      stream.c packet.c    bytes under way, and the check that they arrive unchanged
 *      fault.c        decisions about faults
 *      trace.c        events as text, and their hash
 *      memory.c       the allocator of weir in a world
 *      process.c      processes, death, signals, disks
 *      isolated.c     a run in a child process
 *      child.c        processes that processes start; environments
 *      reduce.c       fewer faults that still fail
 *
 * Everything here runs in one thread. Memory of the simulator itself comes from malloc, not from
 * weir's allocator, whose failures and leaks it examines.
 */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/address.h>
#include <weir/sim.h>

#include "base/list.h"
#include "loop/seams.h"
#include "os/random.h"

typedef struct weir__sim_fiber weir__sim_fiber;
typedef struct weir__sim_event weir__sim_event;
typedef struct weir__sim_file weir__sim_file;
typedef struct weir__sim_descriptor weir__sim_descriptor;
typedef struct weir__sim_io weir__sim_io;
typedef struct weir__sim_watch weir__sim_watch;

/* ---- events: something that happens at a time (schedule.c) ---- */

typedef void weir__sim_event_fn(weir__sim_event *event);

struct weir__sim_event {
    int64_t time_ns;
    uint64_t number; /* events of one time happen in the order in which they were added */
    weir__sim_event_fn *fn;
    size_t slot; /* in the heap, plus 1; 0 = not added */
};

/* Adds an event, or moves it to another time. */
void weir__sim_event_add(weir__sim_event *event, int64_t time_ns, weir__sim_event_fn *fn);
void weir__sim_event_remove(weir__sim_event *event);

/* ---- fibers (fiber.c, schedule.c) ---- */

enum {
    WEIR__SIM_RUNNABLE,
    WEIR__SIM_WAITING,
    WEIR__SIM_ENDED,
};

struct weir__sim_fiber {
    weir__list link; /* of all fibers */
    uint64_t number; /* in this world */
    uint64_t handle; /* in the process, never used again */
    char name[32];
    weir_thread_fn *fn;
    void *arg;
    weir_sim_process *process;
    uint8_t state;
    bool detached;
    size_t slot; /* among the runnable ones */

    /* While it waits. */
    const char *wait_kind;
    const void *wait_object;
    weir__sim_event timeout;
    weir__list wait_link; /* of those that wait for an object */
    uint64_t signals;     /* of signal_wait: the set */
    uint64_t own_signals; /* sent to this fiber by its process */

    weir__random random;

    /* The machine's state. */
    void *stack_pointer;
    char *stack;
    char *locals; /* thread-local variables while another fiber runs */
    int saved_errno;
    void *fake_stack; /* of ASan */
};

/* Starts fn(arg) as a fiber of a process; NULL without memory. */
weir__sim_fiber *weir__sim_fiber_start(weir_sim_process *process, const char *name,
                                       weir_thread_fn *fn, void *arg);

/*
 * Suspends the calling fiber until weir__sim_wake_fiber or the deadline. `kind` is a text for
 * reports.
 */
void weir__sim_wait(const char *kind, const void *object, int64_t deadline_ns);
void weir__sim_wake_fiber(weir__sim_fiber *fiber);

/* Waits for the end of a fiber and frees it; frees it when it ends. */
void weir__sim_fiber_join(weir__sim_fiber *fiber);
void weir__sim_fiber_detach(weir__sim_fiber *fiber);

const char *weir__sim_free_ended(void);

/* Lets other fibers run first. */
void weir__sim_yield(void);

/* The same if the seed wants it; may also stop the fiber for a while. */
void weir__sim_preempt(void);

/* The machine (fiber.c). */
int weir__sim_fibers_begin(void);
void weir__sim_fibers_end(void); /* frees the stacks */
int weir__sim_fiber_prepare(weir__sim_fiber *fiber);
void weir__sim_fiber_unprepare(weir__sim_fiber *fiber);
void weir__sim_fiber_switch(weir__sim_fiber *from, weir__sim_fiber *to);
void weir__sim_fiber_main(void); /* where a new fiber begins: schedule.c */

/* Runs fibers until none is left or the run has failed. Called by the root of the world. */
void weir__sim_run_all(void);

/* ---- hosts and processes ---- */

typedef struct weir__sim_link {
    weir__list link;
    weir_sim_host *a, *b;
    weir_sim_network network;
    unsigned separations; /* > 0: nothing passes */
} weir__sim_link;

struct weir_sim_host {
    weir__list link;
    char *name;
    weir_address addresses[4];
    size_t address_count;
    unsigned number;
    unsigned stops; /* > 0: its fibers do not run */
    int64_t clock_offset_ns;
    unsigned next_port;
    weir__list sockets; /* bound ones */
    weir__list paths;   /* of Unix sockets */
    uint8_t *disk;
    size_t disk_length, disk_size;
};

struct weir_sim_process {
    weir__list link;
    weir_sim_host *host;
    char *name;
    weir_sim_main_fn *fn;
    void *arg;
    unsigned number;
    int result;
    bool has_ended;
    bool is_dying;
    bool restarts;
    int64_t restart_ns;
    weir__sim_event restart;
    unsigned fibers;
    uint64_t pending_signals;
    weir__list signal_files;
    unsigned descriptors; /* open ones */
    unsigned generation;  /* how often it was started */
    weir_sim_process *successor;
    weir__list statics; /* its copies of variables: see weir__process_static */

    /* child.c */
    weir_sim_process *parent; /* that started it; NULL = the world */
    weir_sim_process *child;  /* the last one that it started */
    bool is_reaped;
    weir__list pidfds;
    char **environment;   /* to NULL; NULL = empty */
    int first_descriptor; /* of those that it was given */
};

/* ---- the world ---- */

enum {
    WEIR__SIM_TRACE_TEXT_MAX = 96,
};

typedef struct weir__sim_trace_entry {
    int64_t time_ns;
    const weir_sim_process *process; /* of the thread; NULL = the simulator */
    char thread[32];
    const char *kind;
    bool is_named;                   /* `subject` and `text` name what `a` is the number of */
    const weir_sim_process *subject; /* NULL = no process */
    uint64_t a, b;
    char text[WEIR__SIM_TRACE_TEXT_MAX];
} weir__sim_trace_entry;

struct weir_sim {
    weir_sim_options options;
    const weir__seams *seams;
    weir__system real; /* the table of system calls before */
    weir__random random;
    int64_t now_ns;
    uint64_t steps;

    weir__sim_fiber root; /* the caller of weir_sim_run */
    weir__sim_fiber *current;
    weir__list fibers;
    weir__sim_fiber **runnable;
    size_t runnable_count, runnable_size;
    uint64_t next_fiber;
    weir__list futexes; /* fibers that wait for one */
    weir__list joiners; /* fibers that wait for the end of another */
    weir__list process_joiners;
    weir__list ended; /* fibers that nobody has joined yet */

    weir__sim_event **events;
    size_t event_count, event_size;
    uint64_t next_event;

    weir__list hosts;
    weir__list processes;
    weir__list links;
    unsigned next_host, next_process;
    weir_sim_host *world_host;
    weir_sim_process *world_process;

    weir__sim_descriptor **descriptors; /* by number */
    size_t descriptor_size, first_free;
    uint64_t next_file;

    weir_sim_program_fn *program;
    void *program_arg;

    /* fault.c */
    uint64_t decisions[WEIR_SIM_FAULT_COUNT];
    weir_sim_fault_event *faults;
    size_t fault_count, fault_size;
    weir_sim_fault_event *only_faults; /* of the options, sorted */
    bool calm;
    weir__sim_event fault_tick;
    weir__list outages;

    /* trace.c */
    uint64_t hash;
    uint64_t event_total;
    weir__sim_trace_entry *trace;
    size_t trace_next;
    char *failure;
    char *failure_trace;

    weir__list checks;

    /* memory.c */
    int64_t live_blocks;
    uint64_t pool_bytes; /* in use before */
    bool fails_allocations;
};

/* The world that runs, or NULL. */
extern weir_sim *weir__sim;

void weir__sim_run_checks(bool at_end); /* those of the program */

/* ---- random numbers and faults ---- */

uint64_t weir__sim_below(uint64_t limit);   /* 0 .. limit - 1; limit > 0 */
int64_t weir__sim_duration(int64_t max_ns); /* 0 .. max_ns */

/* True if a fault of this kind happens now. Adds it to the list. */
bool weir__sim_fault(enum weir_sim_fault kind);
int weir__sim_faults_init(void);
void weir__sim_faults_begin(void); /* those that happen by themselves */
void weir__sim_faults_end(void);

/* ---- trace ---- */

/* Adds an event. `kind` is a constant text; `text` may be NULL. */
void weir__sim_trace(const char *kind, uint64_t a, uint64_t b);
void weir__sim_trace_text(const char *kind, const char *text);

/* The same, of something that has a name besides its number `a`: a process, a thread of it, or
 * something else if `process` is NULL. */
void weir__sim_trace_named(const char *kind, const weir_sim_process *process, const char *name,
                           uint64_t a, uint64_t b);

/* Calls fn with each of the last events. Allocates nothing. */
void weir__sim_trace_each(void (*fn)(const char *line, void *user_data), void *user_data);

/* ---- descriptors ---- */

enum {
    WEIR__SIM_FD_FIRST = 100000, /* those of the process itself are below */
};

typedef struct weir__sim_file_type {
    const char *name;
    unsigned (*poll)(weir__sim_file *file); /* POLLIN, ... */
    void (*close)(weir__sim_file *file);    /* the last descriptor: frees it */
    void (*kill)(weir__sim_file *file);     /* its process died. NULL = nothing */
} weir__sim_file_type;

struct weir__sim_file {
    const weir__sim_file_type *type;
    weir_sim_process *process; /* that opened it */
    weir__list descriptors;
    unsigned references; /* descriptors, and those that are being passed by a Unix socket */
    unsigned dead;       /* descriptors whose process was killed */
    bool is_socket;      /* a weir__sim_socket */
    bool is_dead;        /* all references are dead */
    uint64_t number;     /* for the trace */
};

/* A number of a process. Several may be one file, also in different processes. */
struct weir__sim_descriptor {
    weir__sim_file *file;
    weir_sim_process *process;
    weir__list link; /* of the file */
    bool is_dead;    /* its process was killed */
    bool was_passed; /* by weir__sim_files_pass */

    weir__list watches;

    /* The backend that watches it. */
    weir__io_handle *handle;
    weir__sim_io *io;
    weir__list ready_link;
};

/*
 * An entry in the wait queue of a descriptor. `fn` is called when the descriptor is woken for some
 * events, 0: its state has changed. `descriptor` is NULL then if it closes. It returns true if it
 * has something to do, which it did not have before: the other exclusive entries are not called
 * then.
 */
struct weir__sim_watch {
    weir__list link;
    weir__sim_descriptor *descriptor;
    bool (*fn)(weir__sim_watch *watch, unsigned events);
    bool is_exclusive;
};

/* Gives the file a descriptor, which counts for the calling process. Fails with -EMFILE, -ENOMEM.
 */
int weir__sim_file_open(weir__sim_file *file, const weir__sim_file_type *type);
weir__sim_file *weir__sim_file_of(int number); /* NULL if there is none */
weir__sim_descriptor *weir__sim_descriptor_of(int number);
int weir__sim_file_close(int number);

/* Another descriptor of the calling process for an open file. */
int weir__sim_file_duplicate(weir__sim_file *file);

/* A reference without a descriptor. The last release closes the file. */
void weir__sim_file_retain(weir__sim_file *file);
void weir__sim_file_release(weir__sim_file *file);

/* Descriptors with adjacent numbers for another process, as copies of the caller's. Returns the
 * first. */
int weir__sim_files_pass(weir_sim_process *to, const int *numbers, size_t count);

/* The process has ended: closes those of them that it did not use. */
void weir__sim_files_end(weir_sim_process *process);

/* The process was killed: its sockets close, unless another process has them, too. */
void weir__sim_files_kill(weir_sim_process *process);

/* What the descriptor is ready for; everything if its process was killed. */
unsigned weir__sim_descriptor_poll(weir__sim_descriptor *descriptor);

/* The file may have become ready: its state has changed; or it was woken for these events. */
void weir__sim_file_changed(weir__sim_file *file);
void weir__sim_file_woken(weir__sim_file *file, unsigned events);

/* A read has left data behind by WEIR_SIM_FAULT_SHORT_READ: as if that arrived only now. */
void weir__sim_file_short_read(weir__sim_file *file);

/* The events that arriving data wakes for. */
#define WEIR__SIM_DATA (POLLIN | POLLPRI | POLLRDBAND)

int weir__sim_eventfd(unsigned value);
bool weir__sim_eventfd_write(weir__sim_file *file, uint64_t value);
bool weir__sim_eventfd_read(weir__sim_file *file, uint64_t *ret_value);
void weir__sim_eventfd_set_io(int descriptor, weir__sim_io *io);

/* ---- the backend ---- */

const weir__io_type *weir__sim_backend(enum weir_io io);

/* If the handle waits for its events. True if it is exclusive and wakes its loop. */
bool weir__sim_io_ready(weir__sim_descriptor *descriptor);
void weir__sim_io_forget(weir__sim_descriptor *descriptor); /* it closes */
void weir__sim_io_wake(weir__sim_io *io);                   /* by its eventfd */

/* ---- io_uring: only if libweir was built with liburing ---- */

void weir__sim_uring_begin(void); /* installs its system calls */
void weir__sim_uring_end(void);

/* ---- others ---- */

extern const weir__virtual_os weir__sim_virtual_os;
void weir__sim_system_install(void); /* into weir__sys */
int weir__sim_memory_begin(void);
void weir__sim_memory_end(void);

weir_sim_process *weir__sim_process(void); /* of the calling fiber */
weir_sim_process *weir__sim_process_create(weir_sim_host *host, const char *name);
int weir__sim_process_begin(weir_sim_process *process); /* starts its main fiber */
void weir__sim_process_signal(weir_sim_process *process, int number);
void weir__sim_process_kill(weir_sim_process *process);

static inline int weir__sim_pid(const weir_sim_process *process)
{
    return (int)process->number + 1;
}

void weir__sim_process_free(weir_sim_process *process);
void weir__sim_processes_join(void);                     /* waits for all that were started */
void weir__sim_process_leave(weir_sim_process *process); /* one of its fibers ends */
void weir__sim_processes_die(void);                      /* WEIR_SIM_FAULT_DEATH */
void *weir__sim_process_static(const void *variable, size_t size);
weir_sim_host *weir__sim_host_add(const char *name);
void weir__sim_host_free(weir_sim_host *host);

#endif
