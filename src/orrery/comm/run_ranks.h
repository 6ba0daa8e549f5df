#pragma once
#include <functional>
#include <span>

#include "orrery/base/error.h"
#include "orrery/comm/mesh.h"

namespace orrery::comm {

using OnFailure = std::function<void(const Error& error)>;

/// Runs fn(mesh) once per mesh, all of them at the same time: rank 0 on the calling thread, the others on
/// threads of their own, each in inference mode with `threads` threads for tensor operations. Returns when
/// all have ended. If one of many throws, the exchanges of the others fail; then the error that began it is
/// thrown here, naming the rank and its last operation, the one of the lowest rank if several did. `failed`,
/// if given, hears it at once, on the thread of that rank, while others may still compute. An error on which
/// all have agreed (agreement.h) is thrown by all.
void run_ranks(std::span<const Mesh> meshes, int threads, const std::function<void(const Mesh&)>& fn,
               const OnFailure& failed = {});

}  // namespace orrery::comm
