#include "orrery/app/session.h"

#include <unistd.h>

#include <iostream>

#include "orrery/app/interrupt.h"
#include "orrery/app/launch.h"
#include "orrery/app/report.h"
#include "orrery/base/log.h"
#include "orrery/comm/agreement.h"
#include "orrery/parallel/team.h"

namespace orrery::app {
namespace {

/// The survivors say the same thing: enough if the first of them does, but nobody knows who that is.
[[noreturn]] void end_after_loss(const std::string& message) {
  std::cerr << error_line(Error(ErrorKind::kPeer, message)) << std::endl;
  ::_exit(exit_code(ErrorKind::kPeer));
}

}  // namespace

Session::Session(const std::optional<comm::Place>& place, config::Plan& plan) {
  if (!place) {
    factors_ = config::resolve(plan);
    return;
  }
  log::set_prefix(place->rank == 0 ? "" : concat("[rank ", place->rank, "] "));
  require(!plan.ranks || *plan.ranks == place->size, "ranks: expected ", place->size,
          ", as many processes as have been started together, found ", plan.ranks.value_or(0));
  plan.ranks = place->size;
  factors_ = config::resolve(plan, place->local_size);
  comm::Watch watch;
  watch.no_progress = std::chrono::seconds(plan.timeout);
  watch.on_loss = end_after_loss;
  mesh_ = std::make_shared<comm::Mesh>(
      comm::make_process_mesh(comm::join(*place, watch), parallel::mesh_shape(factors_)));
}

void Session::together(const std::function<void()>& fn) const {
  if (!mesh_) return fn();
  comm::together(mesh_->control(), fn);
}

int Session::run(const std::function<int()>& fn) const {
  if (!mesh_) return fn();
  try {
    const int code = fn();
    mesh_->finish();
    return code;
  } catch (const comm::AgreedError& error) {
    mesh_->finish();
    if (leads()) throw;
    return exit_code(error.kind());
  } catch (...) {
    mesh_->fail(current_error().what());
    throw;
  }
}

EndIfStuck::~EndIfStuck() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  over_.notify_all();
}

void EndIfStuck::after(const Error& error) {
  const std::lock_guard guard(mutex_);
  if (thread_) return;
  thread_.emplace(platform::start_thread("end if stuck", 1, [this, error] {
    std::unique_lock lock(mutex_);
    if (over_.wait_for(lock, std::chrono::duration<double>(seconds_), [&] { return is_over_; })) return;
    std::cerr << error_line(error) << std::endl;
    ::_exit(exit_code(error.kind()));
  }));
}

int run_session(const std::string& command, const std::vector<std::string>& words,
                const Environment& environment,
                const std::function<int(const Session& session, config::Arguments& arguments)>& fn) {
  auto arguments = config::parse_arguments(words, command);
  if (!arguments.help.empty()) {
    std::cout << arguments.help;
    return 0;
  }
  config::Plan& plan = arguments.plan;
  if (plan.launch == config::Launch::kProcesses && !environment.place)
    if (const int64_t ranks = config::resolve(plan).ranks(); ranks > 1)
      return launch_processes(command, words, static_cast<int>(ranks));
  watch_interrupts();
  const Session session(environment.place, plan);
  const auto& settings = arguments.settings;
  if (settings.quiet || settings.json || !session.leads()) log::set_level(log::Level::kWarn);
  return session.run([&] { return fn(session, arguments); });
}

}  // namespace orrery::app
