/* cores.c - how many threads a container is good for, from files as the system writes them. */
#include "runtime/pool_impl.h"

#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Writes `text` to a file below the root, with the folders it needs. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool begin(void)
{
    snprintf(root, sizeof root, "/tmp/cfx-cores-XXXXXX");
    return CHECK(mkdtemp(root) != NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT_EQ(0, system(command));
}

TEST(without_control_groups)
{
    REQUIRE(begin());
    CHECK_INT_EQ(8, cfxi_rt_cores_under(root, 8));
    CHECK_INT_EQ(1, cfxi_rt_cores_under(root, 0));
    CHECK_INT_EQ(3, cfxi_rt_cores_under("/no/such/folder", 3));
    end();
}

TEST(version_2)
{
    REQUIRE(begin());
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    CHECK_INT_EQ(8, cfxi_rt_cores_under(root, 8));
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_INT_EQ(2, cfxi_rt_cores_under(root, 8));
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    CHECK_INT_EQ(3, cfxi_rt_cores_under(root, 8));  /* rounded up */
    CHECK_INT_EQ(2, cfxi_rt_cores_under(root, 2));  /* fewer to run on */
    put("/sys/fs/cgroup/cpu.max", "1000 100000\n");
    CHECK_INT_EQ(1, cfxi_rt_cores_under(root, 8));
    put("/sys/fs/cgroup/cpu.max", "what is this\n");
    CHECK_INT_EQ(8, cfxi_rt_cores_under(root, 8));
    end();
}

TEST(groups_above_count_too)
{
    REQUIRE(begin());
    put("/proc/self/cgroup", "1:name=systemd:/a\n0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "700000 100000\n");
    CHECK_INT_EQ(7, cfxi_rt_cores_under(root, 16));
    put("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    CHECK_INT_EQ(4, cfxi_rt_cores_under(root, 16));
    put("/sys/fs/cgroup/a/b/cpu.max", "500000 100000\n");
    CHECK_INT_EQ(4, cfxi_rt_cores_under(root, 16));
    put("/sys/fs/cgroup/a/b/c/cpu.max", "150000 50000\n");
    CHECK_INT_EQ(3, cfxi_rt_cores_under(root, 16));
    end();
}

/* The path is that of the host; the files of the container's group are at the top. */
TEST(a_path_of_the_host)
{
    REQUIRE(begin());
    put("/proc/self/cgroup", "0::/docker/0123456789\n");
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    CHECK_INT_EQ(3, cfxi_rt_cores_under(root, 16));
    end();
}

TEST(version_1)
{
    REQUIRE(begin());
    put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/pod/box\n3:cpuset:/\n");
    put("/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_period_us", "100000\n");
    CHECK_INT_EQ(16, cfxi_rt_cores_under(root, 16));
    put("/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_quota_us", "450000\n");
    CHECK_INT_EQ(5, cfxi_rt_cores_under(root, 16));
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    CHECK_INT_EQ(5, cfxi_rt_cores_under(root, 16));  /* without a period it says nothing */
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_INT_EQ(2, cfxi_rt_cores_under(root, 16));
    end();
}

TEST(this_machine)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned cores = cfxi_rt_cores();
    CHECK(cores >= 1 && (online < 1 || cores <= (unsigned long)online));
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    REQUIRE(rt);
    CHECK_INT_EQ(cores < CFXI_MOST_THREADS ? cores : CFXI_MOST_THREADS, cfx_runtime_threads(rt));
    cfx_runtime_free(rt);
}
