/* processors.c - keeps helpers off the processor of the thread that they help.
 *
 * A scheduler that saves power, or packs the threads of a virtual machine, puts a thread where the
 * one that woke it runs, and moves it milliseconds later. Until then the two take turns, and a job
 * of some hundred microseconds takes as long as without help.
 */
#define _GNU_SOURCE  /* sched_getcpu, pthread_setaffinity_np */
#include "pool_impl.h"

#include <sched.h>

int cfxi_rt_processor(void) { return sched_getcpu(); }

void cfxi_rt_avoid(pthread_t thread, int *avoided, int processor)
{
    cpu_set_t set;
    if (processor < 0 || processor >= CPU_SETSIZE || processor == *avoided ||
        pthread_getaffinity_np(thread, sizeof set, &set) != 0)
        return;
    if (*avoided >= 0)
        CPU_SET(*avoided, &set);
    const bool may_run_there = CPU_ISSET(processor, &set);  /* else it must not be allowed to later */
    CPU_CLR(processor, &set);
    if (CPU_COUNT(&set) > 0 && pthread_setaffinity_np(thread, sizeof set, &set) == 0)
        *avoided = may_run_there ? processor : -1;
}
