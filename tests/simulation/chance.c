/* Preloaded into a simulated process: what the system would draw at random comes from the seed. Rust's hash tables and
   tokio's choice between ready branches take their seeds from here. The wall clock, which HTTP's `Date` shows, stands
   still; the emulator is given one of its own. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    static uint64_t state;
    static int begun;
    (void)flags;
    if (!begun) {
        const char *seed = getenv("SIMULATION_SEED");
        state = seed ? strtoull(seed, NULL, 10) : 0;
        begun = 1;
    }
    unsigned char *bytes = buffer;
    for (size_t at = 0; at < length; at++) {
        /* splitmix64 */
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        bytes[at] = (unsigned char)(z ^ (z >> 31));
    }
    return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_REALTIME) return (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec = 1767225600;
    time->tv_nsec = 0;
    return 0;
}
