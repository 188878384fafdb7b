/* cores.c - how many threads can run at once: scheduling, and the quota of the control group; and
 * on which processors.
 *
 * A container often may run on all processors of its host, but only for part of the time: a quota
 * of 150 ms in each period of 100 ms is worth one and a half processors. More threads than that
 * only run into the limit together, and then all of them stand still until the period ends.
 *
 *   version 2  /proc/self/cgroup has "0::/a/b"; /sys/fs/cgroup/a/b/cpu.max has "150000 100000"
 *   version 1  "3:cpu,cpuacct:/a/b"; /sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us, .cpu.cfs_period_us
 *
 * Every group above counts, too. In a container the path may be that of the host, where the files
 * of the container's own group lie at the top: so the walk up to the top finds them in any case.
 */
#define _GNU_SOURCE  /* sched_getaffinity, sched_getcpu, pthread_setaffinity_np */
#include "pool_impl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_ROOM = 1024 };

/* ---- files --------------------------------------------------------------------------------- */

static bool read_line(const char *path, char *line, int room)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    const bool read = fgets(line, room, f) != NULL;
    fclose(f);
    return read;
}

static double read_number(const char *folder, const char *name)
{
    char path[PATH_ROOM];
    char line[64];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || size >= (int)sizeof path || !read_line(path, line, sizeof line))
        return -1;
    return strtod(line, NULL);
}

/* ---- quotas -------------------------------------------------------------------------------- */

/* In processors; negative: no limit here. "max 100000" is none. */
static double quota_v2(const char *folder)
{
    char path[PATH_ROOM];
    char line[64];
    double quota;
    double period;
    const int size = snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (size < 0 || size >= (int)sizeof path || !read_line(path, line, sizeof line) ||
        sscanf(line, "%lf %lf", &quota, &period) != 2 || period <= 0)
        return -1;
    return quota / period;
}

static double quota_v1(const char *folder)
{
    const double quota = read_number(folder, "cpu.cfs_quota_us");
    const double period = quota > 0 ? read_number(folder, "cpu.cfs_period_us") : 0;
    return period > 0 ? quota / period : -1;
}

/* The least quota of a group and those above it: `top` is where the hierarchy is mounted. */
static double least_quota(const char *top, const char *group, double quota(const char *),
                          double most)
{
    char folder[PATH_ROOM];
    int size = snprintf(folder, sizeof folder, "%s%s", top, group);
    const size_t floor = strlen(top);
    if (size < 0 || size >= (int)sizeof folder)
        size = snprintf(folder, sizeof folder, "%s", top);
    for (size_t end = (size_t)size;;) {
        const double here = quota(folder);
        if (here > 0 && here < most)
            most = here;
        while (end > floor && folder[end - 1] != '/')
            end--;
        if (end <= floor)
            return most;
        folder[--end] = 0;
    }
}

/* Whether a list "cpu,cpuacct" has this word. */
static bool has_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += size)
        if ((at == list || at[-1] == ',') && (at[size] == ',' || at[size] == 0))
            return true;
    return false;
}

/* A line of /proc/self/cgroup: number, controllers, path. */
static double line_quota(const char *root, char *line, double most)
{
    char top[PATH_ROOM];
    char *names = strchr(line, ':');
    char *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return most;
    *group++ = 0;
    names++;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(group, "/") == 0)
        group[0] = 0;
    if (!*names) {
        snprintf(top, sizeof top, "%s/sys/fs/cgroup", root);
        most = least_quota(top, group, quota_v2, most);
    } else if (has_word(names, "cpu")) {
        snprintf(top, sizeof top, "%s/sys/fs/cgroup/cpu", root);
        most = least_quota(top, group, quota_v1, most);
        snprintf(top, sizeof top, "%s/sys/fs/cgroup/%s", root, names);
        most = least_quota(top, group, quota_v1, most);
    }
    return most;
}

unsigned cfxi_rt_cores_under(const char *root, unsigned allowed)
{
    char path[PATH_ROOM];
    char line[PATH_ROOM];
    double most = allowed < 1 ? 1 : allowed;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        most = line_quota(root, line, most);
    if (f)
        fclose(f);
    const unsigned whole = (unsigned)most;
    return whole < most ? whole + 1 : whole;
}

unsigned cfxi_rt_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return cfxi_rt_cores_under("", (unsigned)CPU_COUNT(&set));
    const long n = sysconf(_SC_NPROCESSORS_ONLN);  /* more than the set has room for */
    return cfxi_rt_cores_under("", n < 1 ? 1 : (unsigned)n);
}

/* ---- where --------------------------------------------------------------------------------- */

int cfxi_rt_processor(void) { return sched_getcpu(); }

/* A scheduler that saves power, or packs the threads of a virtual machine, puts a thread where the
 * one that woke it runs, and moves it milliseconds later. Until then the two take turns, and a job
 * of some hundred microseconds takes as long as without help. */
void cfxi_rt_avoid(pthread_t thread, int *avoided, int processor)
{
    cpu_set_t set;
    if (processor < 0 || processor >= CPU_SETSIZE || processor == *avoided ||
        pthread_getaffinity_np(thread, sizeof set, &set) != 0)
        return;
    if (*avoided >= 0)
        CPU_SET(*avoided, &set);
    const bool may_run_there = CPU_ISSET(processor, &set);  /* else never later either */
    CPU_CLR(processor, &set);
    if (CPU_COUNT(&set) > 0 && pthread_setaffinity_np(thread, sizeof set, &set) == 0)
        *avoided = may_run_there ? processor : -1;
}
