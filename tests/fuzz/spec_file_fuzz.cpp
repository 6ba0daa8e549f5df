// libFuzzer: hostile parameter files. The first byte chooses the format; only an Error may come out, and what
// is accepted must complete, validate or be refused in the same way.
#include "orrery/base/error.h"
#include "orrery/config/spec_file.h"
#include "orrery/config/validate.h"

using namespace orrery;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr config::SpecFormat kFormats[] = {config::SpecFormat::kJson, config::SpecFormat::kJsonLines,
                                             config::SpecFormat::kYaml};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    for (const config::Sample& sample : config::parse_spec(text, kFormats[data[0] % 3], "file"))
      config::validate(config::complete(sample.request, {}), {}, {});
  } catch (const Error&) {
  }
  return 0;
}
