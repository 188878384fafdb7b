/* forks.h - how often this process was forked, and a mutex that a fork does not leave held.
 *
 * The child of a fork() has one thread. What the others held or were about to change stays as it
 * was at that moment: nobody there would ever give a mutex back. So the first who wants a
 * cfxi_lock in the child makes it anew, and is told if what it guards was being changed.
 */
#ifndef CFXI_FORKS_H
#define CFXI_FORKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* From the first call on, forks are counted; false if the system has no memory for that. */
bool cfxi_base_watch_forks(void);
/* How many forks lie between this process and the first one that counted. Asking the system for
 * the process each time would cost more than small jobs do. */
unsigned cfxi_base_forks(void);

typedef struct cfxi_lock {
    pthread_mutex_t mutex;
    atomic_uint ready_for;    /* the number of forks that this is right for, */
    atomic_uint claimed_for;  /* and that some thread makes it right for */
    atomic_bool inside;       /* somebody is */
} cfxi_lock;

/* False if the system has none left. */
bool cfxi_base_lock_new(cfxi_lock *l);
void cfxi_base_lock_free(cfxi_lock *l);
/* Takes it. Returns whether this process was forked while a thread that it does not have was
 * inside: what the lock guards is then half-changed, and the caller sets it right or forgets it.
 * Only one caller is told so. */
bool cfxi_base_lock_take(cfxi_lock *l);
void cfxi_base_lock_leave(cfxi_lock *l);

#endif
