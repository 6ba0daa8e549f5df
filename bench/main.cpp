#include <benchmark/benchmark.h>

#include "orrery/platform/memory.h"

int main(int argc, char** argv) {
  // As the engine does: faulting in the pages of a new result costs more than the fast ops themselves.
  orrery::platform::tune_malloc();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
