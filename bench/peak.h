#pragma once
// What this machine can do at most, measured in the same run as the ops: times alone say little on a shared
// machine.
#include <benchmark/benchmark.h>

namespace orrery::bench {

/// Float32 operations per second of all threads in a loop of multiply-adds between registers; measured at the
/// first call.
double peak_flops();

/// Bytes read and written per second by all threads that copy a buffer larger than the caches; measured at
/// the first call.
double peak_bandwidth();

/// Counters "FLOP/s" and "of_peak" for a loop that does `operations` per iteration.
void report_flops(benchmark::State& state, double operations);

/// Counters "B/s" and "of_peak" for a loop that has to move `bytes` per iteration.
void report_bytes(benchmark::State& state, double bytes);

}  // namespace orrery::bench
