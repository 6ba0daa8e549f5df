#include "orrery/comm/run_ranks.h"

#include <c10/core/InferenceMode.h>

#include <exception>

#include "orrery/base/error.h"
#include "orrery/comm/agreement.h"
#include "orrery/platform/thread.h"

namespace orrery::comm {
namespace {

/// Runs one rank, and tells the others how it ended.
void run_rank(const Mesh& mesh, const std::function<void(const Mesh&)>& fn, const OnFailure& failed) {
  try {
    fn(mesh);
    mesh.finish();
  } catch (const AgreedError&) {
    mesh.finish();  // the others throw it too, perhaps a moment later
    throw;
  } catch (...) {
    const Error error = current_error();
    const std::string told = mesh.fail(error.what());
    if (mesh.size() == 1 || error.kind() == ErrorKind::kPeer) throw;
    const Error named(error.kind(), told, error.code());
    if (failed) failed(named);
    throw named;
  }
}

std::exception_ptr failure_of(const std::function<void()>& fn) {
  try {
    fn();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Did this rank fail only because another did?
bool is_consequence(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return e.kind() == ErrorKind::kPeer;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_ranks(std::span<const Mesh> meshes, int threads, const std::function<void(const Mesh&)>& fn,
               const OnFailure& failed) {
  std::vector<platform::Thread> others;
  std::vector<std::exception_ptr> failures;
  failures.push_back(failure_of([&] {
    try {
      for (const Mesh& mesh : meshes.subspan(1))
        others.push_back(platform::start_thread(concat("rank ", mesh.rank()), threads,
                                                [&] { run_rank(mesh, fn, failed); }));
    } catch (const std::exception& e) {
      meshes[0].fail(e.what());
      throw;
    }
    const c10::InferenceMode inference;
    const platform::ThreadsGuard guard(threads);
    run_rank(meshes[0], fn, failed);
  }));
  for (auto& other : others) failures.push_back(failure_of([&] { other.join(); }));

  std::exception_ptr cause;
  for (const auto& failure : failures)
    if (failure && (!cause || (is_consequence(cause) && !is_consequence(failure)))) cause = failure;
  if (cause) std::rethrow_exception(cause);
}

}  // namespace orrery::comm
