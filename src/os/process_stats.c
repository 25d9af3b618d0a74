/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/system.h"

#define NS_PER_SECOND INT64_C(1000000000)

static int64_t read_clock(clockid_t clock)
{
    struct timespec time = {0};

    (void)clock_gettime(clock, &time);
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

int64_t weir__process_cpu_time(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* Reads a small file; the text is empty if that fails. */
static void read_text(const char *path, char *ret_text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;

    if (file >= 0) {
        length = weir__sys.read(file, ret_text, size - 1);
        (void)weir__sys.close(file);
    }
    ret_text[length > 0 ? length : 0] = '\0';
}

/* A number of /proc/self/statm, in pages: 0 = virtual memory, 1 = resident. */
static int64_t read_memory(unsigned index)
{
    long long pages[2] = {0};
    char text[128];

    read_text("/proc/self/statm", text, sizeof(text));
    (void)sscanf(text, "%lld %lld", &pages[0], &pages[1]);
    return pages[index] * sysconf(_SC_PAGESIZE);
}

int64_t weir__process_virtual_bytes(void)
{
    return read_memory(0);
}

int64_t weir__process_resident_bytes(void)
{
    return read_memory(1);
}

/* Fields 20 and 22 of /proc/self/stat: threads, and the start in ticks since boot. The second field
 * is a name in parentheses, which may contain anything. */
static void read_stat(long long *ret_threads, unsigned long long *ret_start)
{
    char text[1024];
    const char *name_end;

    *ret_threads = 0;
    *ret_start = 0;
    read_text("/proc/self/stat", text, sizeof(text));
    name_end = strrchr(text, ')');
    if (name_end != NULL)
        (void)sscanf(name_end + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
                     " %lld %*d %llu",
                     ret_threads, ret_start);
}

int64_t weir__process_threads(void)
{
    unsigned long long start;
    long long threads;

    read_stat(&threads, &start);
    return threads;
}

int64_t weir__process_start_time(void)
{
    int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
    unsigned long long start;
    long long threads;

    read_stat(&threads, &start);
    if (start == 0 || ticks_per_second <= 0)
        return 0;
    return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME) +
           (int64_t)start * (NS_PER_SECOND / ticks_per_second);
}

/* Before Linux 6.2, which has the number as the size of the folder. */
static int64_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = 0;

    if (folder == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count - 1; /* without that of the folder */
}

int64_t weir__process_open_descriptors(void)
{
    struct stat folder;

    if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0)
        return folder.st_size;
    return count_descriptors();
}

int64_t weir__process_max_descriptors(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? (int64_t)limit.rlim_cur
               : 0;
}
