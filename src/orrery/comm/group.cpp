#include "orrery/comm/group.h"

#include <sstream>

namespace orrery::comm {

Extents extents_of(const Message& message) {
  Extents extents;
  for (const auto& tensor : message) extents.push_back({tensor.sizes().vec(), tensor.scalar_type()});
  return extents;
}

std::string to_string(const Extents& extents) {
  std::ostringstream out;
  out << '[';
  for (const auto& spec : extents)
    out << (&spec == extents.data() ? "" : ", ") << spec.dtype << ' ' << at::IntArrayRef(spec.shape);
  out << ']';
  return out.str();
}

}  // namespace orrery::comm
