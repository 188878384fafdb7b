/* forks.c - how often this process was forked, and locks that know it: forks.h. */
#include "forks.h"

#include <sched.h>

/* The one global of the library. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
static int forks_status;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void watch_forks(void) { forks_status = pthread_atfork(NULL, NULL, count_fork); }

bool cfxi_base_watch_forks(void)
{
    pthread_once(&forks_once, watch_forks);
    return forks_status == 0;
}

unsigned cfxi_base_forks(void) { return atomic_load_explicit(&forks, memory_order_relaxed); }

bool cfxi_base_lock_new(cfxi_lock *l)
{
    if (!cfxi_base_watch_forks() || pthread_mutex_init(&l->mutex, NULL) != 0)
        return false;
    atomic_init(&l->ready_for, cfxi_base_forks());
    atomic_init(&l->claimed_for, cfxi_base_forks());
    atomic_init(&l->inside, false);
    return true;
}

/* In a child, a mutex that nobody gives back is left as it is. */
void cfxi_base_lock_free(cfxi_lock *l)
{
    if (atomic_load(&l->ready_for) == cfxi_base_forks())
        pthread_mutex_destroy(&l->mutex);
}

/* In a child: whether this thread is the one that makes the lock anew. Others wait until it has. */
static bool claims(cfxi_lock *l)
{
    const unsigned now = cfxi_base_forks();
    unsigned claimed = atomic_load(&l->claimed_for);
    if (claimed != now && atomic_compare_exchange_strong(&l->claimed_for, &claimed, now))
        return true;
    while (atomic_load_explicit(&l->ready_for, memory_order_acquire) != now)
        sched_yield();
    return false;
}

bool cfxi_base_lock_take(cfxi_lock *l)
{
    const unsigned now = cfxi_base_forks();
    bool torn = false;
    if (atomic_load_explicit(&l->ready_for, memory_order_acquire) != now && claims(l)) {
        pthread_mutex_init(&l->mutex, NULL);
        pthread_mutex_lock(&l->mutex);
        torn = atomic_load(&l->inside);
        atomic_store_explicit(&l->ready_for, now, memory_order_release);
    } else {
        pthread_mutex_lock(&l->mutex);
    }
    atomic_store(&l->inside, true);
    return torn;
}

void cfxi_base_lock_leave(cfxi_lock *l)
{
    atomic_store(&l->inside, false);
    pthread_mutex_unlock(&l->mutex);
}
